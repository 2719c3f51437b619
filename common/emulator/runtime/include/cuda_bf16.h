// Stands for CUDA's header of this name: bfloat16 through torch's type.
#pragma once

#include <c10/util/BFloat16.h>

#include "cuda_runtime.h"
#include "emulator/sixteen_bits.h"

using __nv_bfloat16 = c10::BFloat16;
using nv_bfloat16 = c10::BFloat16;
struct alignas(4) __nv_bfloat162 {
  __nv_bfloat16 x, y;
  EMULATOR_ASSIGNMENTS(__nv_bfloat162, __nv_bfloat16, &made.x, &made.y)
};
using nv_bfloat162 = __nv_bfloat162;

EMULATOR_BEGIN
EMULATOR_SIXTEEN_BITS(bfloat16, __nv_bfloat16, __nv_bfloat162)

inline __nv_bfloat16 __double2bfloat16(double value) { return __nv_bfloat16(emulator::round_to_odd(value)); }
inline __nv_bfloat16 __ushort_as_bfloat16(unsigned short bits) {
  return __nv_bfloat16(bits, __nv_bfloat16::from_bits());
}
inline unsigned short __bfloat16_as_ushort(__nv_bfloat16 value) { return value.x; }
inline __nv_bfloat162 __floats2bfloat162_rn(float x, float y) { return {x, y}; }
EMULATOR_END
