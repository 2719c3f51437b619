// Vectors of numbers for the loops of the CPU, and the gate functions for them: only arithmetic and
// selections, no calls of the C library. With these, a policy of cells.h computes a whole vector of
// units at once.
//
// sigmoid, elu and gate_tanh are off by at most 3 units in the last place of float, and of double.
#pragma once

#include <cstdint>
#include <cstring>

#define ALWAYS_INLINE inline __attribute__((always_inline))

// Vectors are never passed between functions that are compiled separately, so how they would be
// passed is irrelevant.
#pragma GCC diagnostic ignored "-Wpsabi"

namespace {  // each library has its own, as in autograd.cpp
namespace simd {

// How a floating-point number is stored, and constants for the exponential below.
template <typename scalar_t>
struct Format;

template <>
struct Format<float> {
  using bits_t = uint32_t;
  static constexpr int fraction_bits = 23, bias = 127, terms = 7;
  // Where the exponential becomes too small for a normal number, and where it becomes infinite.
  static constexpr float lowest = -87, highest = 89;
  static constexpr float ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;  // n * ln2_high is exact
};

template <>
struct Format<double> {
  using bits_t = uint64_t;
  static constexpr int fraction_bits = 52, bias = 1023, terms = 13;
  static constexpr double lowest = -708, highest = 710;
  static constexpr double ln2_high = 0x1.62e42feep-1, ln2_low = 0x1.a39ef35793c76p-33;
};

template <typename scalar, int kBytes>
struct Vector {
  using scalar_t = scalar;
  static constexpr int size = kBytes / sizeof(scalar_t);
  typedef scalar_t numbers_t __attribute__((vector_size(kBytes)));
  typedef typename Format<scalar_t>::bits_t bits_t __attribute__((vector_size(kBytes)));
  numbers_t numbers;

  Vector() = default;
  ALWAYS_INLINE Vector(scalar_t number)
      : numbers(number - numbers_t{}) {}  // - and not +, for the sign of a zero
  static ALWAYS_INLINE Vector of(numbers_t numbers) {
    Vector vector;
    vector.numbers = numbers;
    return vector;
  }

  friend ALWAYS_INLINE Vector operator+(Vector a, Vector b) { return of(a.numbers + b.numbers); }
  friend ALWAYS_INLINE Vector operator-(Vector a, Vector b) { return of(a.numbers - b.numbers); }
  friend ALWAYS_INLINE Vector operator*(Vector a, Vector b) { return of(a.numbers * b.numbers); }
  friend ALWAYS_INLINE Vector operator/(Vector a, Vector b) { return of(a.numbers / b.numbers); }
  ALWAYS_INLINE Vector operator-() const { return of(-numbers); }
  ALWAYS_INLINE Vector& operator+=(Vector other) { return *this = *this + other; }

  // a > b ? yes : no, for each number.
  friend ALWAYS_INLINE Vector if_greater(Vector a, Vector b, Vector yes, Vector no) {
    return of(a.numbers > b.numbers ? yes.numbers : no.numbers);
  }

  ALWAYS_INLINE bits_t bits() const { return reinterpret_cast<bits_t>(numbers); }
  static ALWAYS_INLINE Vector of_bits(bits_t bits) { return of(reinterpret_cast<numbers_t>(bits)); }
};

// The sign bit of every number, and nothing else.
template <typename V>
constexpr auto kSign =
    typename Format<typename V::scalar_t>::bits_t(1) << (8 * sizeof(typename V::scalar_t) - 1);

// exp(x) = power * (1 + rest), where power = 2^n with n = round(x / ln 2), and rest = expm1(x - n ln 2).
template <typename V>
struct Exponential {
  V power, rest;
};

constexpr double kInverseFactorial[] = {
    1,         1,          1. / 2,      1. / 6,        1. / 24,        1. / 120,        1. / 720,
    1. / 5040, 1. / 40320, 1. / 362880, 1. / 3628800., 1. / 39916800., 1. / 479001600., 1. / 6227020800.};

// 1/k! + r/(k+1)! + r^2/(k+2)! + ..., up to the last term that counts. The coefficients must be constants
// when a template is compiled: g++ would fill a vector with a variable number by number.
template <int k, typename V>
ALWAYS_INLINE V exponential_series(V r) {
  using scalar_t = typename V::scalar_t;
  constexpr scalar_t coefficient = scalar_t(kInverseFactorial[k]);
  if constexpr (k == Format<scalar_t>::terms)
    return coefficient;
  else
    return exponential_series<k + 1>(r) * r + V(coefficient);
}

// NaN stays NaN: every comparison with it is false.
template <typename V>
ALWAYS_INLINE Exponential<V> exponential(V argument) {
  using scalar_t = typename V::scalar_t;
  using F = Format<scalar_t>;
  const V lowest = F::lowest, highest = F::highest;
  const V bounded = if_greater(lowest, argument, lowest, argument);
  const V x = if_greater(bounded, highest, highest, bounded);

  // Near 1.5 * 2^fraction_bits, all numbers of this type are integers, so adding it rounds x / ln 2 to n and
  // leaves n in the lowest bits.
  constexpr scalar_t kWhole = scalar_t(3LL << (F::fraction_bits - 1)),
                     kInverseLn2 = scalar_t(1.4426950408889634);
  const V whole = kWhole, shifted = x * V(kInverseLn2) + whole, n = shifted - whole;
  const V r = (x - n * V(F::ln2_high)) - n * V(F::ln2_low);  // |r| is at most ln(2) / 2
  const typename V::bits_t exponent = shifted.bits() - whole.bits() + typename F::bits_t(F::bias);
  return {V::of_bits(exponent << F::fraction_bits), r + r * r * exponential_series<2>(r)};
}

template <typename scalar_t, int kBytes>
ALWAYS_INLINE Vector<scalar_t, kBytes> sigmoid(Vector<scalar_t, kBytes> z) {
  const auto [power, rest] = exponential(-z);
  return 1 / (1 + power * (1 + rest));  // power may be infinite, and rest below zero
}

// exp(z) - 1 without the loss of digits near zero.
template <typename V>
ALWAYS_INLINE V expm1_of_negative(V z) {
  const auto [power, rest] = exponential(z);
  return power * rest + (power - 1);
}

template <typename scalar_t, int kBytes>
ALWAYS_INLINE Vector<scalar_t, kBytes> elu(Vector<scalar_t, kBytes> z) {
  using V = Vector<scalar_t, kBytes>;
  const V zero = 0;
  return if_greater(z, zero, z, expm1_of_negative(if_greater(z, zero, zero, z)));
}

// e = elu(z)
template <typename scalar_t, int kBytes>
ALWAYS_INLINE Vector<scalar_t, kBytes> d_elu(Vector<scalar_t, kBytes> e) {
  const Vector<scalar_t, kBytes> zero = 0, one = 1;
  return if_greater(e, zero, one, e + one);
}

template <typename scalar_t, int kBytes>
ALWAYS_INLINE Vector<scalar_t, kBytes> gate_tanh(Vector<scalar_t, kBytes> z) {
  using V = Vector<scalar_t, kBytes>;
  const V e = expm1_of_negative(-2 * V::of_bits(z.bits() & ~kSign<V>));  // of -2 |z|
  return V::of_bits(((e / (2 + e)).bits() & ~kSign<V>) | (z.bits() & kSign<V>));
}

// The first `count` numbers of a vector, from memory and back to it.
template <typename V>
ALWAYS_INLINE V load(const typename V::scalar_t* from, int64_t count = V::size) {
  typename V::scalar_t padded[V::size];
  if (count < V::size) {
    std::memset(padded, 0, sizeof(padded));
    std::memcpy(padded, from, count * sizeof(*from));
    from = padded;
  }
  V vector;
  std::memcpy(&vector, from, sizeof(vector));
  return vector;
}

template <typename V>
ALWAYS_INLINE void store(typename V::scalar_t* to, V vector, int64_t count = V::size) {
  if (count < V::size)
    std::memcpy(to, &vector, count * sizeof(*to));
  else
    std::memcpy(to, &vector, sizeof(vector));
}

// Rounds floats to numbers of 16 bits, and keeps them as floats.
enum class Rounding { kNone, kHalf, kBfloat16 };

// Drops the last kBits of each number, and rounds to nearest, ties to even. For finite numbers and infinity.
template <int kBits, typename V>
ALWAYS_INLINE V drop_bits(V vector) {
  const auto bits = vector.bits();
  return V::of_bits((bits + (1u << (kBits - 1)) - 1u + ((bits >> kBits) & 1u)) & ~((1u << kBits) - 1u));
}

template <int kBytes>
ALWAYS_INLINE Vector<float, kBytes> round_to(Rounding rounding, Vector<float, kBytes> vector) {
  using V = Vector<float, kBytes>;
  if (rounding == Rounding::kNone) return vector;
  const V size = V::of_bits(vector.bits() & ~kSign<V>), infinity = __builtin_inff();
  V rounded;
  if (rounding == Rounding::kBfloat16) {
    rounded = drop_bits<16>(size);
  } else {
    // Below the normal numbers of half, all multiples of 2^-24 are in it, as they are in the
    // floats around 0.75.
    const V small = size + V(0.75f) - V(0.75f), smallest_normal = 0x1p-14f, largest = 65504;
    rounded = if_greater(smallest_normal, size, small, drop_bits<13>(size));
    rounded = if_greater(rounded, largest, infinity, rounded);
  }
  rounded = V::of_bits(rounded.bits() | (vector.bits() & kSign<V>));
  return if_greater(infinity, size, rounded, vector);  // infinity and NaN stay as they are
}

template <int kBytes>
ALWAYS_INLINE Vector<double, kBytes> round_to(Rounding, Vector<double, kBytes> vector) {
  return vector;
}

// Instruction sets. kBytes: the size of a vector; kRows: how many rows a product handles at once, so that its
// sums fit into the registers.
template <int bytes, int rows>
struct Registers {
  static constexpr int kBytes = bytes, kRows = rows;
};
using Avx512 = Registers<64, 4>;
using Avx2 = Registers<32, 2>;
using AnyCpu = Registers<16, 2>;

// Calls function(Registers), which is compiled once for each instruction set; one of these versions is chosen
// here, at run time. Its loops must be inlined into these functions; otherwise they use only instructions
// that every CPU has.
#if defined(__x86_64__)
inline bool has_avx512() {
  static const bool has = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  return has;
}

inline bool has_avx2() {
  static const bool has = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  return has;
}

template <typename Function>
__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,fma,prefer-vector-width=512"))) void with_avx512(
    const Function& function) {
  function(Avx512());
}

template <typename Function>
__attribute__((target("avx2,fma,f16c"))) void with_avx2(const Function& function) {
  function(Avx2());
}
#else
inline bool has_avx512() { return false; }
inline bool has_avx2() { return false; }
#endif

template <typename Function>
void run(const Function& function) {
#if defined(__x86_64__)
  if (has_avx512()) return with_avx512(function);
  if (has_avx2()) return with_avx2(function);
#endif
  function(AnyCpu());
}

// The size in bytes of the vectors that run() uses.
inline int vector_bytes() {
  return has_avx512() ? Avx512::kBytes : has_avx2() ? Avx2::kBytes : AnyCpu::kBytes;
}

}  // namespace simd
}  // namespace
