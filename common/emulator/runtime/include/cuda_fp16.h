// Stands for CUDA's header of this name: half, the format of IEEE 754 with 5 bits for the exponent.
#pragma once

#include "cuda_runtime.h"
#include "emulator/sixteen_bits.h"
#include "emulator/sixteen_bits_conversions.h"

namespace c10 {
struct Half;
}

struct __half_raw {
  unsigned short x;
};
struct alignas(4) __half2_raw {
  unsigned short x, y;
};
template <>
struct emulator::sixteen_bits::Relatives<emulator::kHalf> {
  using Raw = __half_raw;
  using Raw2 = __half2_raw;
  using Torch = c10::Half;
  static constexpr bool from_torch_is_explicit = false;
};
using __half = emulator::sixteen_bits::SixteenBits<emulator::kHalf>;
using half = __half;
using __nv_half = __half;
using nv_half = __half;
using __half2 = emulator::sixteen_bits::SixteenBitsPair<emulator::kHalf>;
using half2 = __half2;
using __nv_half2 = __half2;
using nv_half2 = __half2;

EMULATOR_BEGIN
EMULATOR_CONVERSIONS(half, __half, __half2)
#define T __half
#define T2 __half2
#include "emulator/sixteen_bits_functions.h"
#undef T
#undef T2
EMULATOR_END
