// Device maths beyond what <cmath> has. Fast variants (`__expf`) are as exact as the plain ones: a device's
// differ by a few units in the last place. A plain `(int)x` of a float that does not fit saturates on a
// device, and is undefined here.
#pragma once

#include <math.h>

#include <algorithm>
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <limits>
#include <type_traits>

#include "emulator/types.h"

EMULATOR_BEGIN
namespace emulator {

// A result rounded by one of <cfenv>'s modes.
float rounded_add(float a, float b, int mode);
float rounded_multiply(float a, float b, int mode);
float rounded_divide(float a, float b, int mode);
float rounded_root(float a, int mode);
float rounded_fma(float a, float b, float c, int mode);
double rounded_add(double a, double b, int mode);
double rounded_multiply(double a, double b, int mode);
double rounded_divide(double a, double b, int mode);
double rounded_root(double a, int mode);
double rounded_fma(double a, double b, double c, int mode);
float rounded_float(long double value, int mode);
double rounded_double(long double value, int mode);

// As PTX's cvt: out of range goes to the nearest end; NaN to 0, or to the top bit alone where 64 bits or a
// double are involved.
template <typename Integer, typename Float>
Integer to_integer(Float value, int mode) {
  using Limits = std::numeric_limits<Integer>;
  if (std::isnan(value))
    return sizeof(Integer) == 8 || sizeof(Float) == 8
               ? static_cast<Integer>(std::make_unsigned_t<Integer>(1) << (sizeof(Integer) * 8 - 1))
               : 0;
  const Float whole = mode == FE_TONEAREST    ? std::nearbyint(value)
                      : mode == FE_TOWARDZERO ? std::trunc(value)
                      : mode == FE_UPWARD     ? std::ceil(value)
                                              : std::floor(value);
  if (whole <= static_cast<Float>(Limits::min())) return Limits::min();
  if (whole >= std::ldexp(Float(1), Limits::digits)) return Limits::max();
  return static_cast<Integer>(whole);
}

}  // namespace emulator

// clang-format off
#define EMULATOR_EACH_ROUNDING(DEFINE) \
  DEFINE(rn, FE_TONEAREST) DEFINE(rz, FE_TOWARDZERO) DEFINE(ru, FE_UPWARD) DEFINE(rd, FE_DOWNWARD)

#define EMULATOR_ARITHMETIC(R, MODE)                                                                             \
  inline float __fadd_##R(float a, float b) { return emulator::rounded_add(a, b, MODE); }                        \
  inline float __fsub_##R(float a, float b) { return emulator::rounded_add(a, -b, MODE); }                       \
  inline float __fmul_##R(float a, float b) { return emulator::rounded_multiply(a, b, MODE); }                   \
  inline float __fdiv_##R(float a, float b) { return emulator::rounded_divide(a, b, MODE); }                     \
  inline float __frcp_##R(float a) { return emulator::rounded_divide(1.0f, a, MODE); }                           \
  inline float __fsqrt_##R(float a) { return emulator::rounded_root(a, MODE); }                                  \
  inline float __fmaf_##R(float a, float b, float c) { return emulator::rounded_fma(a, b, c, MODE); }            \
  inline double __dadd_##R(double a, double b) { return emulator::rounded_add(a, b, MODE); }                     \
  inline double __dsub_##R(double a, double b) { return emulator::rounded_add(a, -b, MODE); }                    \
  inline double __dmul_##R(double a, double b) { return emulator::rounded_multiply(a, b, MODE); }                \
  inline double __ddiv_##R(double a, double b) { return emulator::rounded_divide(a, b, MODE); }                  \
  inline double __drcp_##R(double a) { return emulator::rounded_divide(1.0, a, MODE); }                          \
  inline double __dsqrt_##R(double a) { return emulator::rounded_root(a, MODE); }                                \
  inline double __fma_##R(double a, double b, double c) { return emulator::rounded_fma(a, b, c, MODE); }         \
  inline int __float2int_##R(float a) { return emulator::to_integer<int>(a, MODE); }                             \
  inline unsigned int __float2uint_##R(float a) { return emulator::to_integer<unsigned int>(a, MODE); }          \
  inline long long __float2ll_##R(float a) { return emulator::to_integer<long long>(a, MODE); }                  \
  inline unsigned long long __float2ull_##R(float a) { return emulator::to_integer<unsigned long long>(a, MODE); } \
  inline int __double2int_##R(double a) { return emulator::to_integer<int>(a, MODE); }                           \
  inline unsigned int __double2uint_##R(double a) { return emulator::to_integer<unsigned int>(a, MODE); }        \
  inline long long __double2ll_##R(double a) { return emulator::to_integer<long long>(a, MODE); }                \
  inline unsigned long long __double2ull_##R(double a) { return emulator::to_integer<unsigned long long>(a, MODE); } \
  inline float __double2float_##R(double a) { return emulator::rounded_float(a, MODE); }                         \
  inline float __int2float_##R(int a) { return emulator::rounded_float(a, MODE); }                               \
  inline float __uint2float_##R(unsigned int a) { return emulator::rounded_float(a, MODE); }                     \
  inline float __ll2float_##R(long long a) { return emulator::rounded_float(a, MODE); }                          \
  inline float __ull2float_##R(unsigned long long a) { return emulator::rounded_float(a, MODE); }                \
  inline double __ll2double_##R(long long a) { return emulator::rounded_double(a, MODE); }                       \
  inline double __ull2double_##R(unsigned long long a) { return emulator::rounded_double(a, MODE); }
EMULATOR_EACH_ROUNDING(EMULATOR_ARITHMETIC)
#undef EMULATOR_ARITHMETIC
#undef EMULATOR_EACH_ROUNDING

inline double __int2double_rn(int a) { return a; }
inline double __uint2double_rn(unsigned int a) { return a; }
inline float __frsqrt_rn(float a) { return float(1 / std::sqrt(double(a))); }
inline float __fdividef(float a, float b) { return a / b; }
inline float fdividef(float a, float b) { return a / b; }
inline float __saturatef(float a) { return a > 0 ? (a < 1 ? a : 1.0f) : 0.0f; }  // NaN gives 0

// glibc declares names like these too, for itself.
inline float __expf(float a) noexcept { return ::expf(a); }
inline float __exp10f(float a) noexcept { return float(std::pow(10.0, double(a))); }
inline float __logf(float a) noexcept { return ::logf(a); }
inline float __log2f(float a) noexcept { return ::log2f(a); }
inline float __log10f(float a) noexcept { return ::log10f(a); }
inline float __sinf(float a) noexcept { return ::sinf(a); }
inline float __cosf(float a) noexcept { return ::cosf(a); }
inline float __tanf(float a) noexcept { return ::tanf(a); }
inline float __powf(float a, float b) noexcept { return ::powf(a, b); }
inline void __sincosf(float a, float* sine, float* cosine) noexcept { *sine = ::sinf(a); *cosine = ::cosf(a); }
inline float __tanhf(float a) noexcept { return ::tanhf(a); }

// Newer C libraries have these themselves.
#if defined(__GLIBC__)
#define EMULATOR_C_LIBRARY (__GLIBC__ * 100 + __GLIBC_MINOR__)
#else
#define EMULATOR_C_LIBRARY 0
#endif
#if EMULATOR_C_LIBRARY < 242
inline double rsqrt(double a) { return 1 / std::sqrt(a); }
inline float rsqrtf(float a) { return float(1 / std::sqrt(double(a))); }
#endif
#if EMULATOR_C_LIBRARY < 241
double sinpi(double a);
double cospi(double a);
inline float sinpif(float a) { return float(sinpi(double(a))); }
inline float cospif(float a) { return float(cospi(double(a))); }
#endif
inline float rsqrt(float a) { return float(1 / std::sqrt(double(a))); }
inline float exp10(float a) { return float(std::pow(10.0, double(a))); }
inline float sinpi(float a) { return sinpif(a); }
inline float cospi(float a) { return cospif(a); }
inline void sincospi(double a, double* sine, double* cosine) { *sine = sinpi(a); *cosine = cospi(a); }
inline void sincospif(float a, float* sine, float* cosine) { *sine = sinpif(a); *cosine = cospif(a); }
inline void sincos(float a, float* sine, float* cosine) { *sine = ::sinf(a); *cosine = ::cosf(a); }

double erfinv(double a);
double erfcinv(double a);
double erfcx(double a);
inline double normcdf(double a) { return std::erfc(-a * M_SQRT1_2) / 2; }
inline double normcdfinv(double a) { return -M_SQRT2 * erfcinv(2 * a); }
inline double rcbrt(double a) { return 1 / std::cbrt(a); }
inline double rhypot(double a, double b) { return 1 / std::hypot(a, b); }
inline double norm3d(double a, double b, double c) { return std::hypot(a, b, c); }
inline double rnorm3d(double a, double b, double c) { return 1 / std::hypot(a, b, c); }
inline double norm4d(double a, double b, double c, double d) { return std::hypot(std::hypot(a, b), std::hypot(c, d)); }
inline double rnorm4d(double a, double b, double c, double d) { return 1 / norm4d(a, b, c, d); }
inline double cyl_bessel_i0(double a) { return std::cyl_bessel_i(0.0, std::fabs(a)); }
inline double cyl_bessel_i1(double a) { return std::copysign(std::cyl_bessel_i(1.0, std::fabs(a)), a); }

#define EMULATOR_FLOAT_OF_1(NAME) \
  inline float NAME##f(float a) { return float(NAME(double(a))); } inline float NAME(float a) { return NAME##f(a); }
EMULATOR_FLOAT_OF_1(erfinv) EMULATOR_FLOAT_OF_1(erfcinv) EMULATOR_FLOAT_OF_1(erfcx) EMULATOR_FLOAT_OF_1(normcdf)
EMULATOR_FLOAT_OF_1(normcdfinv) EMULATOR_FLOAT_OF_1(rcbrt)
#undef EMULATOR_FLOAT_OF_1
inline float rhypotf(float a, float b) { return float(rhypot(double(a), double(b))); }
inline float norm3df(float a, float b, float c) { return float(norm3d(a, b, c)); }
inline float rnorm3df(float a, float b, float c) { return float(rnorm3d(a, b, c)); }
inline float norm4df(float a, float b, float c, float d) { return float(norm4d(a, b, c, d)); }
inline float rnorm4df(float a, float b, float c, float d) { return float(rnorm4d(a, b, c, d)); }
inline float cyl_bessel_i0f(float a) { return float(cyl_bessel_i0(a)); }
inline float cyl_bessel_i1f(float a) { return float(cyl_bessel_i1(a)); }

// Bits of one type as another.
inline int __float_as_int(float a) { return __builtin_bit_cast(int, a); }
inline unsigned int __float_as_uint(float a) { return __builtin_bit_cast(unsigned int, a); }
inline float __int_as_float(int a) { return __builtin_bit_cast(float, a); }
inline float __uint_as_float(unsigned int a) { return __builtin_bit_cast(float, a); }
inline long long __double_as_longlong(double a) { return __builtin_bit_cast(long long, a); }
inline double __longlong_as_double(long long a) { return __builtin_bit_cast(double, a); }
inline int __double2hiint(double a) { return int(__builtin_bit_cast(std::uint64_t, a) >> 32); }
inline int __double2loint(double a) { return int(__builtin_bit_cast(std::uint64_t, a)); }
inline double __hiloint2double(int high, int low) {
  return __builtin_bit_cast(double, std::uint64_t(unsigned(high)) << 32 | unsigned(low));
}

// Integers.
inline int __clz(int a) { return a ? __builtin_clz(unsigned(a)) : 32; }
inline int __clzll(long long a) { return a ? __builtin_clzll(static_cast<unsigned long long>(a)) : 64; }
inline int __ffs(int a) { return __builtin_ffs(a); }
inline int __ffsll(long long a) { return __builtin_ffsll(a); }
inline int __popc(unsigned int a) { return __builtin_popcount(a); }
inline int __popcll(unsigned long long a) { return __builtin_popcountll(a); }
inline unsigned int __brev(unsigned int a) {
  unsigned int reversed = 0;
  for (int bit = 0; bit < 32; bit++) reversed |= (a >> bit & 1u) << (31 - bit);
  return reversed;
}
inline unsigned long long __brevll(unsigned long long a) {
  return static_cast<unsigned long long>(__brev(unsigned(a))) << 32 | __brev(unsigned(a >> 32));
}
inline unsigned int __byte_perm(unsigned int x, unsigned int y, unsigned int selector) {
  const std::uint64_t bytes = std::uint64_t(y) << 32 | x;
  unsigned int chosen = 0;
  for (int byte = 0; byte < 4; byte++) chosen |= unsigned(bytes >> (selector >> 4 * byte & 7) * 8 & 255) << 8 * byte;
  return chosen;
}
inline unsigned int __funnelshift_l(unsigned int low, unsigned int high, unsigned int shift) {
  return unsigned(((std::uint64_t(high) << 32 | low) << (shift & 31)) >> 32);
}
inline unsigned int __funnelshift_lc(unsigned int low, unsigned int high, unsigned int shift) {
  return unsigned(((std::uint64_t(high) << 32 | low) << std::min(shift, 32u)) >> 32);
}
inline unsigned int __funnelshift_r(unsigned int low, unsigned int high, unsigned int shift) {
  return unsigned((std::uint64_t(high) << 32 | low) >> (shift & 31));
}
inline unsigned int __funnelshift_rc(unsigned int low, unsigned int high, unsigned int shift) {
  return unsigned((std::uint64_t(high) << 32 | low) >> std::min(shift, 32u));
}
inline int __mulhi(int a, int b) { return int(static_cast<long long>(a) * b >> 32); }
inline unsigned int __umulhi(unsigned int a, unsigned int b) { return unsigned(std::uint64_t(a) * b >> 32); }
inline long long __mul64hi(long long a, long long b) { return static_cast<long long>(static_cast<__int128>(a) * b >> 64); }
inline unsigned long long __umul64hi(unsigned long long a, unsigned long long b) {
  return static_cast<unsigned long long>(static_cast<unsigned __int128>(a) * b >> 64);
}
inline int __mul24(int a, int b) { return int(unsigned((a << 8) >> 8) * unsigned((b << 8) >> 8)); }
inline unsigned int __umul24(unsigned int a, unsigned int b) { return (a & 0xffffff) * (b & 0xffffff); }
inline unsigned int __sad(int a, int b, unsigned int sum) {
  return sum + (a > b ? unsigned(a) - unsigned(b) : unsigned(b) - unsigned(a));
}
inline unsigned int __usad(unsigned int a, unsigned int b, unsigned int sum) { return sum + (a > b ? a - b : b - a); }
inline int __hadd(int a, int b) { return int((static_cast<long long>(a) + b) >> 1); }
inline int __rhadd(int a, int b) { return int((static_cast<long long>(a) + b + 1) >> 1); }
inline unsigned int __uhadd(unsigned int a, unsigned int b) { return unsigned((std::uint64_t(a) + b) >> 1); }
inline unsigned int __urhadd(unsigned int a, unsigned int b) { return unsigned((std::uint64_t(a) + b + 1) >> 1); }

// A sum, modulo 2^32, and the products of four bytes, or of two halves and the lower or higher two bytes.
#define EMULATOR_DOT_PRODUCTS(INTEGER, BYTE, HALF, BYTES, HALVES)                                                \
  inline INTEGER __dp4a(BYTES a, BYTES b, INTEGER sum) {                                                         \
    const unsigned more = unsigned(a.x * b.x + a.y * b.y + a.z * b.z + a.w * b.w);                               \
    return static_cast<INTEGER>(unsigned(sum) + more);                                                           \
  }                                                                                                              \
  inline INTEGER __dp2a_lo(HALVES a, BYTES b, INTEGER sum) {                                                     \
    return static_cast<INTEGER>(unsigned(sum) + unsigned(a.x * b.x + a.y * b.y));                                \
  }                                                                                                              \
  inline INTEGER __dp2a_hi(HALVES a, BYTES b, INTEGER sum) {                                                     \
    return static_cast<INTEGER>(unsigned(sum) + unsigned(a.x * b.z + a.y * b.w));                                \
  }                                                                                                              \
  namespace emulator {                                                                                           \
  inline BYTES bytes_of(INTEGER a) {                                                                             \
    return {static_cast<BYTE>(a), static_cast<BYTE>(a >> 8), static_cast<BYTE>(a >> 16),                         \
            static_cast<BYTE>(a >> 24)};                                                                         \
  }                                                                                                              \
  inline HALVES halves_of(INTEGER a) { return {static_cast<HALF>(a), static_cast<HALF>(a >> 16)}; }              \
  }                                                                                                              \
  inline INTEGER __dp4a(INTEGER a, INTEGER b, INTEGER sum) {                                                     \
    return __dp4a(emulator::bytes_of(a), emulator::bytes_of(b), sum);                                            \
  }                                                                                                              \
  inline INTEGER __dp2a_lo(INTEGER a, INTEGER b, INTEGER sum) {                                                  \
    return __dp2a_lo(emulator::halves_of(a), emulator::bytes_of(b), sum);                                        \
  }                                                                                                              \
  inline INTEGER __dp2a_hi(INTEGER a, INTEGER b, INTEGER sum) {                                                  \
    return __dp2a_hi(emulator::halves_of(a), emulator::bytes_of(b), sum);                                        \
  }
EMULATOR_DOT_PRODUCTS(int, signed char, short, char4, short2)
EMULATOR_DOT_PRODUCTS(unsigned int, unsigned char, unsigned short, uchar4, ushort2)
#undef EMULATOR_DOT_PRODUCTS

// The least and greatest of two, without std::. Signed and unsigned are compared as unsigned; NaN loses.
#define EMULATOR_MIN_MAX(A, B, COMMON)                                                                           \
  inline COMMON min(A a, B b) { return std::min<COMMON>(a, b); }                                               \
  inline COMMON max(A a, B b) { return std::max<COMMON>(a, b); }
#define EMULATOR_MIN_MAX_INTEGER(T)                                                                              \
  EMULATOR_MIN_MAX(T, T, T) EMULATOR_MIN_MAX(unsigned T, unsigned T, unsigned T)                                 \
  EMULATOR_MIN_MAX(T, unsigned T, unsigned T) EMULATOR_MIN_MAX(unsigned T, T, unsigned T)
EMULATOR_MIN_MAX_INTEGER(int) EMULATOR_MIN_MAX_INTEGER(long) EMULATOR_MIN_MAX_INTEGER(long long)
#undef EMULATOR_MIN_MAX_INTEGER
#undef EMULATOR_MIN_MAX
inline float min(float a, float b) { return ::fminf(a, b); }
inline float max(float a, float b) { return ::fmaxf(a, b); }
inline double min(double a, double b) { return ::fmin(a, b); }
inline double max(double a, double b) { return ::fmax(a, b); }
inline double min(float a, double b) { return ::fmin(double(a), b); }
inline double max(float a, double b) { return ::fmax(double(a), b); }
inline double min(double a, float b) { return ::fmin(a, double(b)); }
inline double max(double a, float b) { return ::fmax(a, double(b)); }
inline unsigned int umin(unsigned int a, unsigned int b) { return min(a, b); }
inline unsigned int umax(unsigned int a, unsigned int b) { return max(a, b); }
inline long long llmin(long long a, long long b) { return min(a, b); }
inline long long llmax(long long a, long long b) { return max(a, b); }
inline unsigned long long ullmin(unsigned long long a, unsigned long long b) { return min(a, b); }
inline unsigned long long ullmax(unsigned long long a, unsigned long long b) { return max(a, b); }
// clang-format on
EMULATOR_END
