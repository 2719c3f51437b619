// CUDA's conversions of the 16-bit types: their names contain the name of the type.
#pragma once

#include "emulator/sixteen_bits.h"

// clang-format off
#define EMULATOR_CONVERSIONS_ROUNDED(NAME, T, R, MODE)                                                            \
  inline T __float2##NAME##_##R(float v) { return T::rounded(v, MODE); }                                         \
  inline T __int2##NAME##_##R(int v) { return T::rounded(v, MODE); }                                             \
  inline T __uint2##NAME##_##R(unsigned v) { return T::rounded(v, MODE); }                                       \
  inline T __short2##NAME##_##R(short v) { return T::rounded(v, MODE); }                                         \
  inline T __ushort2##NAME##_##R(unsigned short v) { return T::rounded(v, MODE); }                               \
  inline T __ll2##NAME##_##R(long long v) { return T::rounded(emulator::to_double(v), MODE); }                   \
  inline T __ull2##NAME##_##R(unsigned long long v) { return T::rounded(emulator::to_double(v), MODE); }         \
  inline int __##NAME##2int_##R(T v) { return emulator::to_integer<int>(float(v), MODE); }                       \
  inline unsigned __##NAME##2uint_##R(T v) { return emulator::to_integer<unsigned>(float(v), MODE); }            \
  inline short __##NAME##2short_##R(T v) { return emulator::to_integer<short>(float(v), MODE); }                 \
  inline unsigned short __##NAME##2ushort_##R(T v) { return emulator::to_integer<unsigned short>(float(v), MODE); } \
  inline long long __##NAME##2ll_##R(T v) { return emulator::to_integer<long long>(float(v), MODE); }            \
  inline unsigned long long __##NAME##2ull_##R(T v) {                                                            \
    return emulator::to_integer<unsigned long long>(float(v), MODE);                                             \
  }

#define EMULATOR_CONVERSIONS(NAME, T, T2)                                                                        \
  EMULATOR_CONVERSIONS_ROUNDED(NAME, T, rn, FE_TONEAREST)                                                         \
  EMULATOR_CONVERSIONS_ROUNDED(NAME, T, rz, FE_TOWARDZERO)                                                        \
  EMULATOR_CONVERSIONS_ROUNDED(NAME, T, ru, FE_UPWARD)                                                            \
  EMULATOR_CONVERSIONS_ROUNDED(NAME, T, rd, FE_DOWNWARD)                                                          \
  inline T __float2##NAME(float v) { return T(v); }                                                              \
  inline T __double2##NAME(double v) { return T(v); }                                                            \
  inline float __##NAME##2float(T v) { return float(v); }                                                        \
  inline signed char __##NAME##2char_rz(T v) { return emulator::to_integer<signed char>(float(v), FE_TOWARDZERO); } \
  inline unsigned char __##NAME##2uchar_rz(T v) { return emulator::to_integer<unsigned char>(float(v), FE_TOWARDZERO); } \
  inline T __short_as_##NAME(short bits) { return T::from_bits(static_cast<unsigned short>(bits)); }             \
  inline T __ushort_as_##NAME(unsigned short bits) { return T::from_bits(bits); }                                \
  inline short __##NAME##_as_short(T v) { return static_cast<short>(v.bits); }                                   \
  inline unsigned short __##NAME##_as_ushort(T v) { return v.bits; }                                             \
  inline T2 make_##NAME##2(T x, T y) { return {x, y}; }                                                          \
  inline T2 __halves2##NAME##2(T low, T high) { return {low, high}; }                                            \
  inline T2 __##NAME##2##NAME##2(T v) { return {v, v}; }                                                         \
  inline T2 __float2##NAME##2_rn(float v) { return {T(v), T(v)}; }                                               \
  inline T2 __floats2##NAME##2_rn(float low, float high) { return {T(low), T(high)}; }                           \
  inline T2 __float22##NAME##2_rn(float2 v) { return {T(v.x), T(v.y)}; }                                         \
  inline float2 __##NAME##22float2(T2 v) { return {float(v.x), float(v.y)}; }                                    \
  inline T __low2##NAME(T2 v) { return v.x; }                                                                    \
  inline T __high2##NAME(T2 v) { return v.y; }                                                                   \
  inline T2 __low2##NAME##2(T2 v) { return {v.x, v.x}; }                                                         \
  inline T2 __high2##NAME##2(T2 v) { return {v.y, v.y}; }                                                        \
  inline T2 __lows2##NAME##2(T2 a, T2 b) { return {a.x, b.x}; }                                                  \
  inline T2 __highs2##NAME##2(T2 a, T2 b) { return {a.y, b.y}; }
// clang-format on
