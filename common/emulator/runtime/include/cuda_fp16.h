// Stands for CUDA's header of this name: half through torch's type. Arithmetic is done in float and rounded
// to half, which for + - * / and the square root gives the same bits as rounding once.
#pragma once

#include <c10/util/Half.h>

#include "cuda_runtime.h"
#include "emulator/sixteen_bits.h"

using __half = c10::Half;
using half = c10::Half;
struct alignas(4) __half2 {
  __half x, y;
  EMULATOR_ASSIGNMENTS(__half2, __half, &made.x, &made.y)
};
using half2 = __half2;

EMULATOR_BEGIN
EMULATOR_SIXTEEN_BITS(half, __half, __half2)

inline __half2 __floats2half2_rn(float x, float y) { return {x, y}; }
inline __half __double2half(double value) { return __half(emulator::round_to_odd(value)); }
inline __half __short_as_half(short bits) {
  return __half(static_cast<unsigned short>(bits), __half::from_bits());
}
inline __half __ushort_as_half(unsigned short bits) { return __half(bits, __half::from_bits()); }
inline short __half_as_short(__half value) { return static_cast<short>(value.x); }
inline unsigned short __half_as_ushort(__half value) { return value.x; }
EMULATOR_END
