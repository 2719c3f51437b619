// Stands for CUDA's header of this name: bfloat16, the upper half of a float.
#pragma once

#include "cuda_runtime.h"
#include "emulator/sixteen_bits.h"
#include "emulator/sixteen_bits_conversions.h"

namespace c10 {
struct BFloat16;
}

struct __nv_bfloat16_raw {
  unsigned short x;
};
struct alignas(4) __nv_bfloat162_raw {
  unsigned short x, y;
};
template <>
struct emulator::sixteen_bits::Relatives<emulator::kBFloat16> {
  using Raw = __nv_bfloat16_raw;
  using Raw2 = __nv_bfloat162_raw;
  using Torch = c10::BFloat16;
  static constexpr bool from_torch_is_explicit = true;
};
using __nv_bfloat16 = emulator::sixteen_bits::SixteenBits<emulator::kBFloat16>;
using nv_bfloat16 = __nv_bfloat16;
using __nv_bfloat162 = emulator::sixteen_bits::SixteenBitsPair<emulator::kBFloat16>;
using nv_bfloat162 = __nv_bfloat162;

EMULATOR_BEGIN
EMULATOR_CONVERSIONS(bfloat16, __nv_bfloat16, __nv_bfloat162)
#define T __nv_bfloat16
#define T2 __nv_bfloat162
#include "emulator/sixteen_bits_functions.h"
#undef T
#undef T2
EMULATOR_END
