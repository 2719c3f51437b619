// The gate functions for a loop over units that the compiler vectorises: no branches and no calls of the C
// library, only arithmetic and selections. And a function that runs such a loop with the best instructions
// that the CPU has.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

#define ALWAYS_INLINE inline __attribute__((always_inline))

namespace {  // each library has its own, as in lltm_autograd.cpp
namespace simd {

// How a floating-point number is stored, and constants for the exponential below.
template <typename scalar_t>
struct Format;

template <>
struct Format<float> {
  using bits_t = int32_t;
  static constexpr int fraction_bits = 23, bias = 127, terms = 7;
  // Where the exponential becomes too small for a normal number, and where it becomes infinite.
  static constexpr float lowest = -87, highest = 89;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // n * ln2_high is exact
};

template <>
struct Format<double> {
  using bits_t = int64_t;
  static constexpr int fraction_bits = 52, bias = 1023, terms = 13;
  static constexpr double lowest = -708, highest = 710;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
};

// exp(x) = power * (1 + rest), where power = 2^n with n = round(x / ln 2), and rest = expm1(x - n ln 2).
template <typename scalar_t>
struct Exponential {
  scalar_t power, rest;
};

// NaN stays NaN: every comparison with it is false.
template <typename scalar_t>
ALWAYS_INLINE Exponential<scalar_t> exponential(scalar_t x) {
  using F = Format<scalar_t>;
  using bits_t = typename F::bits_t;
  x = x < F::lowest ? F::lowest : x;
  x = x > F::highest ? F::highest : x;

  // Near 1.5 * 2^fraction_bits, all numbers of this type are integers, so adding it rounds x / ln 2 to n and
  // leaves n in the lowest bits.
  constexpr scalar_t whole = scalar_t(3LL << (F::fraction_bits - 1));
  const scalar_t shifted = x * scalar_t(1.4426950408889634) + whole;
  const scalar_t n = shifted - whole;
  const scalar_t r = (x - n * F::ln2_high) - n * F::ln2_low;  // |r| is at most ln(2) / 2

  constexpr double inverse_factorial[] = {
      1,         1,          1. / 2,      1. / 6,        1. / 24,        1. / 120,        1. / 720,
      1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800., 1. / 39916800., 1. / 479001600., 1. / 6227020800.};
  scalar_t series = scalar_t(inverse_factorial[F::terms]);
#pragma GCC unroll 16
  for (int k = F::terms - 1; k >= 2; --k) series = series * r + scalar_t(inverse_factorial[k]);

  bits_t bits, bits_of_whole;
  std::memcpy(&bits, &shifted, sizeof(bits));
  std::memcpy(&bits_of_whole, &whole, sizeof(bits));
  using unsigned_t = std::make_unsigned_t<bits_t>;
  const unsigned_t exponent = unsigned_t(bits) - unsigned_t(bits_of_whole) + unsigned_t(F::bias);
  const unsigned_t bits_of_power = exponent << F::fraction_bits;
  scalar_t power;
  std::memcpy(&power, &bits_of_power, sizeof(power));
  return {power, r + r * r * series};
}

template <typename scalar_t>
ALWAYS_INLINE scalar_t sigmoid(scalar_t z) {
  const auto [power, rest] = exponential(-z);
  return 1 / (1 + power * (1 + rest));  // power may be infinite, and rest below zero
}

// exp(z) - 1 without the loss of digits near zero.
template <typename scalar_t>
ALWAYS_INLINE scalar_t expm1_of_negative(scalar_t z) {
  const auto [power, rest] = exponential(z);
  return power * rest + (power - 1);
}

template <typename scalar_t>
ALWAYS_INLINE scalar_t elu(scalar_t z) {
  const scalar_t below = expm1_of_negative(z > 0 ? scalar_t(0) : z);
  return z > 0 ? z : below;
}

template <typename scalar_t>
ALWAYS_INLINE scalar_t tanh(scalar_t z) {
  const scalar_t e = expm1_of_negative(-2 * std::fabs(z));
  return std::copysign(e / (2 + e), z);
}

// Runs work(), which is compiled once for each instruction set; one of these versions is chosen here, at run
// time. The loops of work() must be inlined into these functions; otherwise they use only instructions that
// every CPU has.
#if defined(__x86_64__)
template <typename Work>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"))) void with_avx512(
    const Work& work) {
  work();
}

template <typename Work>
__attribute__((target("avx2,fma,f16c"))) void with_avx2(const Work& work) {
  work();
}
#endif

template <typename Work>
void run(const Work& work) {
#if defined(__x86_64__)
  static const bool has_avx512 = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (has_avx512) return with_avx512(work);
  if (has_avx2) return with_avx2(work);
#endif
  work();
}

}  // namespace simd
}  // namespace
