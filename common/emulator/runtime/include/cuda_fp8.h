// Stands for CUDA's header of this name: numbers of 8 bits, with 4 bits for the exponent and 3 for the
// mantissa, or with 5 and 2.
#pragma once

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "emulator/eight_bits.h"

using __nv_fp8_storage_t = unsigned char;
using __nv_fp8x2_storage_t = unsigned short;
using __nv_fp8x4_storage_t = unsigned int;
enum __nv_saturation_t { __NV_NOSAT, __NV_SATFINITE };
enum __nv_fp8_interpretation_t { __NV_E4M3, __NV_E5M2 };

using __nv_fp8_e4m3 = emulator::eight_bits::EightBits<emulator::kE4M3>;
using __nv_fp8_e5m2 = emulator::eight_bits::EightBits<emulator::kE5M2>;
using __nv_fp8x2_e4m3 = emulator::eight_bits::EightBitsPair<emulator::kE4M3>;
using __nv_fp8x2_e5m2 = emulator::eight_bits::EightBitsPair<emulator::kE5M2>;
using __nv_fp8x4_e4m3 = emulator::eight_bits::EightBitsFour<emulator::kE4M3>;
using __nv_fp8x4_e5m2 = emulator::eight_bits::EightBitsFour<emulator::kE5M2>;

EMULATOR_BEGIN
inline __nv_fp8_storage_t __nv_cvt_double_to_fp8(double v, __nv_saturation_t saturate,
                                                 __nv_fp8_interpretation_t kind) {
  const emulator::FloatFormat format = kind == __NV_E4M3 ? emulator::kE4M3 : emulator::kE5M2;
  return __nv_fp8_storage_t(saturate == __NV_SATFINITE ? emulator::round_to_finite(v, format)
                                                       : emulator::round_to_format(v, format));
}
inline __half_raw __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t v, __nv_fp8_interpretation_t kind) {
  return __half(emulator::read_format(v, kind == __NV_E4M3 ? emulator::kE4M3 : emulator::kE5M2));
}
inline __half2_raw __nv_cvt_fp8x2_to_halfraw2(__nv_fp8x2_storage_t v, __nv_fp8_interpretation_t kind) {
  return {__nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(v), kind).x,
          __nv_cvt_fp8_to_halfraw(__nv_fp8_storage_t(v >> 8), kind).x};
}

// clang-format off
#define EMULATOR_FP8_CONVERSION(name, T, number)                                                                 \
  inline __nv_fp8_storage_t __nv_cvt_##name##_to_fp8(T v, __nv_saturation_t saturate,                            \
                                                     __nv_fp8_interpretation_t kind) {                           \
    return __nv_cvt_double_to_fp8(double(number), saturate, kind);                                               \
  }
#define EMULATOR_FP8_CONVERSION_OF_2(name, T, x, y)                                                              \
  inline __nv_fp8x2_storage_t __nv_cvt_##name##_to_fp8x2(T v, __nv_saturation_t saturate,                        \
                                                         __nv_fp8_interpretation_t kind) {                       \
    return __nv_fp8x2_storage_t(__nv_cvt_double_to_fp8(double(x), saturate, kind) |                              \
                                __nv_cvt_double_to_fp8(double(y), saturate, kind) << 8);                         \
  }
EMULATOR_FP8_CONVERSION(float, float, v)
EMULATOR_FP8_CONVERSION(halfraw, __half_raw, float(__half(v)))
EMULATOR_FP8_CONVERSION(bfloat16raw, __nv_bfloat16_raw, float(__nv_bfloat16(v)))
EMULATOR_FP8_CONVERSION_OF_2(float2, float2, v.x, v.y)
EMULATOR_FP8_CONVERSION_OF_2(double2, double2, v.x, v.y)
EMULATOR_FP8_CONVERSION_OF_2(halfraw2, __half2_raw, float(__half2(v).x), float(__half2(v).y))
EMULATOR_FP8_CONVERSION_OF_2(bfloat16raw2, __nv_bfloat162_raw, float(__nv_bfloat162(v).x), float(__nv_bfloat162(v).y))
#undef EMULATOR_FP8_CONVERSION_OF_2
#undef EMULATOR_FP8_CONVERSION
// clang-format on
EMULATOR_END
