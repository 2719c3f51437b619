// What CUDA offers for both half and bfloat16, under names that differ in one word.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "emulator/atomics.h"
#include "emulator/loads.h"
#include "emulator/maths.h"
#include "emulator/synchronise.h"

EMULATOR_BEGIN
namespace emulator {

// A double as a float that rounds to the same 16-bit number
// as the double would: what is cut off sets the last bit.
inline float round_to_odd(double value) {
  float nearest = float(value);
  if (double(nearest) == value || std::isnan(value) || std::isinf(nearest)) return nearest;
  std::uint32_t bits;
  std::memcpy(&bits, &nearest, sizeof(bits));
  if (std::fabs(double(nearest)) > std::fabs(value)) bits--;  // towards zero
  bits |= 1;
  std::memcpy(&nearest, &bits, sizeof(bits));
  return nearest;
}

}  // namespace emulator
EMULATOR_END

// clang-format off
#define EMULATOR_SIXTEEN_BITS(NAME, T, T2)                                                                       \
  inline T __float2##NAME(float v) { return T(v); }                                                              \
  inline T __float2##NAME##_rn(float v) { return T(v); }                                                         \
  inline float __##NAME##2float(T v) { return float(v); }                                                        \
  inline T __int2##NAME##_rn(int v) { return T(emulator::round_to_odd(v)); }                                     \
  inline int __##NAME##2int_rn(T v) { return __float2int_rn(float(v)); }                                         \
  inline int __##NAME##2int_rz(T v) { return __float2int_rz(float(v)); }                                         \
  inline T __hadd(T a, T b) { return T(float(a) + float(b)); }                                                   \
  inline T __hsub(T a, T b) { return T(float(a) - float(b)); }                                                   \
  inline T __hmul(T a, T b) { return T(float(a) * float(b)); }                                                   \
  inline T __hdiv(T a, T b) { return T(float(a) / float(b)); }                                                   \
  inline T __hneg(T a) { return T(-float(a)); }                                                                  \
  inline T __habs(T a) { return T(std::fabs(float(a))); }                                                        \
  inline T __hfma(T a, T b, T c) {                                                                               \
    return T(emulator::round_to_odd(std::fma(double(float(a)), double(float(b)), double(float(c)))));            \
  }                                                                                                              \
  inline T __hmax(T a, T b) { return T(std::fmax(float(a), float(b))); }                                         \
  inline T __hmin(T a, T b) { return T(std::fmin(float(a), float(b))); }                                         \
  inline bool __hisnan(T a) { return std::isnan(float(a)); }                                                     \
  inline int __hisinf(T a) { return std::isinf(float(a)) ? (float(a) > 0 ? 1 : -1) : 0; }                        \
  inline bool __heq(T a, T b) { return float(a) == float(b); }                                                   \
  inline bool __hne(T a, T b) { return float(a) != float(b) && !__hisnan(a) && !__hisnan(b); }                   \
  inline bool __hlt(T a, T b) { return float(a) < float(b); }                                                    \
  inline bool __hle(T a, T b) { return float(a) <= float(b); }                                                   \
  inline bool __hgt(T a, T b) { return float(a) > float(b); }                                                    \
  inline bool __hge(T a, T b) { return float(a) >= float(b); }                                                   \
  inline T hexp(T a) { return T(std::exp(float(a))); }                                                           \
  inline T hlog(T a) { return T(std::log(float(a))); }                                                           \
  inline T hsqrt(T a) { return T(std::sqrt(float(a))); }                                                         \
  inline T hrsqrt(T a) { return T(1 / std::sqrt(float(a))); }                                                    \
  inline T hrcp(T a) { return T(1 / float(a)); }                                                                 \
  inline T hsin(T a) { return T(std::sin(float(a))); }                                                           \
  inline T hcos(T a) { return T(std::cos(float(a))); }                                                           \
  inline T hfloor(T a) { return T(std::floor(float(a))); }                                                       \
  inline T hceil(T a) { return T(std::ceil(float(a))); }                                                         \
  inline T htrunc(T a) { return T(std::trunc(float(a))); }                                                       \
  inline T hrint(T a) { return T(std::nearbyint(float(a))); }                                                    \
  inline T2 __##NAME##2##NAME##2(T a) { return {a, a}; }                                                         \
  inline T2 __halves2##NAME##2(T low, T high) { return {low, high}; }                                            \
  inline T2 __float2##NAME##2_rn(float v) { return {T(v), T(v)}; }                                               \
  inline T2 __float22##NAME##2_rn(float2 v) { return {T(v.x), T(v.y)}; }                                         \
  inline float2 __##NAME##22float2(T2 v) { return {float(v.x), float(v.y)}; }                                    \
  inline float __low2float(T2 v) { return float(v.x); }                                                          \
  inline float __high2float(T2 v) { return float(v.y); }                                                         \
  inline T __low2##NAME(T2 v) { return v.x; }                                                                    \
  inline T __high2##NAME(T2 v) { return v.y; }                                                                   \
  inline T2 make_##NAME##2(T x, T y) { return {x, y}; }                                                          \
  inline T2 __hadd2(T2 a, T2 b) { return {__hadd(a.x, b.x), __hadd(a.y, b.y)}; }                                 \
  inline T2 __hsub2(T2 a, T2 b) { return {__hsub(a.x, b.x), __hsub(a.y, b.y)}; }                                 \
  inline T2 __hmul2(T2 a, T2 b) { return {__hmul(a.x, b.x), __hmul(a.y, b.y)}; }                                 \
  inline T2 __h2div(T2 a, T2 b) { return {__hdiv(a.x, b.x), __hdiv(a.y, b.y)}; }                                 \
  inline T2 __hfma2(T2 a, T2 b, T2 c) { return {__hfma(a.x, b.x, c.x), __hfma(a.y, b.y, c.y)}; }                 \
  inline T2 __hmax2(T2 a, T2 b) { return {__hmax(a.x, b.x), __hmax(a.y, b.y)}; }                                 \
  inline T2 __hmin2(T2 a, T2 b) { return {__hmin(a.x, b.x), __hmin(a.y, b.y)}; }                                 \
  inline T atomicAdd(T* address, T value) {                                                                      \
    return emulator::atomic(address, [=](T old) { return __hadd(old, value); });                                 \
  }                                                                                                              \
  inline T2 atomicAdd(T2* address, T2 value) {                                                                   \
    return emulator::atomic(address, [=](T2 old) { return __hadd2(old, value); });                               \
  }                                                                                                              \
  EMULATOR_SHUFFLES(T)                                                                                           \
  EMULATOR_SHUFFLES(T2)
// clang-format on
