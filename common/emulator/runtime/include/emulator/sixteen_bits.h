// The 16-bit floating-point types: half and bfloat16, and what CUDA offers for both of them.
#pragma once

#include <cstdint>
#include <functional>
#include <type_traits>
#include <utility>

#include "emulator/atomics.h"
#include "emulator/loads.h"
#include "emulator/maths.h"
#include "emulator/small_floats.h"
#include "emulator/synchronise.h"

// A namespace of their own: C++ also looks for the functions that a program calls with such a number in the
// namespace of its type.
namespace emulator::sixteen_bits {

// Whether a macro is undefined: then its text is its own name.
#define EMULATOR_TEXT(...) #__VA_ARGS__
#define EMULATOR_IS_UNDEFINED(macro) (EMULATOR_TEXT(macro)[0] == '_')

// The types that convert to and from those of a format without a change of bits: CUDA's structures of bits,
// and the type in torch's headers, which need not be included. Its header says whether the conversion from it
// is explicit. And which conversions and operators a program may use: macros such as __CUDA_NO_HALF_OPERATORS__,
// which torch's build defines, switch them off. So the emulator's own code uses `of` and `value`.
template <const FloatFormat& format>
struct Relatives;

template <const FloatFormat& format>
struct alignas(2) SixteenBits {
  using Raw = typename Relatives<format>::Raw;
  using Torch = typename Relatives<format>::Torch;
  template <typename T, bool is_explicit>
  static constexpr bool kConverts =
      std::is_same_v<T, Torch> && is_explicit == Relatives<format>::from_torch_is_explicit;
  static constexpr bool kHasConversions = Relatives<format>::has_conversions;
  static constexpr bool kHasOperators = Relatives<format>::has_operators;
  std::uint16_t bits;

  SixteenBits() = default;
  template <typename T>
  requires(std::is_arithmetic_v<T>&& kHasConversions) SixteenBits(T value) : SixteenBits(of(value)) {}
  constexpr SixteenBits(Raw raw) : bits(raw.x) {}
  template <typename T>
  requires kConverts<T, false> SixteenBits(const T& value) : bits(value.x) {}
  template <typename T>
  requires kConverts<T, true> explicit SixteenBits(const T& value) : bits(value.x) {}

  static constexpr SixteenBits from_bits(std::uint16_t bits) { return SixteenBits(Raw{bits}); }
  template <typename T>
  static SixteenBits of(T number) {
    return from_bits(std::uint16_t(round_to_format(to_double(number), format)));
  }
  float value() const { return read_format(bits, format); }
  static SixteenBits rounded(double value, int mode) {
    return from_bits(std::uint16_t(round_to_format(value, format, mode)));
  }

  operator float() const requires kHasConversions { return value(); }
  template <typename T>
  requires(std::is_integral_v<T>&& kHasConversions) operator T() const {
    return to_integer<T>(value(), FE_TOWARDZERO);
  }
  operator bool() const requires kHasConversions { return bits << 1 & 0xffff; }
  constexpr operator Raw() const { return {bits}; }
  template <typename T>
  requires std::is_same_v<T, Torch> operator T() const {
    return T(bits, T::from_bits());
  }

  // clang-format off
#define EMULATOR_OF_OPERATORS requires kHasOperators
  friend SixteenBits operator+(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return of(a.value() + b.value()); }
  friend SixteenBits operator-(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return of(a.value() - b.value()); }
  friend SixteenBits operator*(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return of(a.value() * b.value()); }
  friend SixteenBits operator/(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return of(a.value() / b.value()); }
  SixteenBits operator+() const EMULATOR_OF_OPERATORS { return *this; }
  SixteenBits operator-() const EMULATOR_OF_OPERATORS { return of(-value()); }
  SixteenBits& operator+=(SixteenBits other) EMULATOR_OF_OPERATORS { return *this = *this + other; }
  SixteenBits& operator-=(SixteenBits other) EMULATOR_OF_OPERATORS { return *this = *this - other; }
  SixteenBits& operator*=(SixteenBits other) EMULATOR_OF_OPERATORS { return *this = *this * other; }
  SixteenBits& operator/=(SixteenBits other) EMULATOR_OF_OPERATORS { return *this = *this / other; }
  SixteenBits& operator++() EMULATOR_OF_OPERATORS { return *this += of(1); }
  SixteenBits& operator--() EMULATOR_OF_OPERATORS { return *this -= of(1); }
  SixteenBits operator++(int) EMULATOR_OF_OPERATORS { return std::exchange(*this, *this + of(1)); }
  SixteenBits operator--(int) EMULATOR_OF_OPERATORS { return std::exchange(*this, *this - of(1)); }
  friend bool operator==(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return a.value() == b.value(); }
  friend bool operator!=(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return a.value() != b.value(); }
  friend bool operator<(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return a.value() < b.value(); }
  friend bool operator<=(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return a.value() <= b.value(); }
  friend bool operator>(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return a.value() > b.value(); }
  friend bool operator>=(SixteenBits a, SixteenBits b) EMULATOR_OF_OPERATORS { return a.value() >= b.value(); }
#undef EMULATOR_OF_OPERATORS
  // clang-format on
};

// Two of them, loaded and stored as one.
template <const FloatFormat& format>
struct alignas(4) SixteenBitsPair {
  using T = SixteenBits<format>;
  using Raw2 = typename Relatives<format>::Raw2;
  T x, y;

  SixteenBitsPair() = default;
  constexpr SixteenBitsPair(T x, T y) : x(x), y(y) {}
  constexpr SixteenBitsPair(Raw2 raw) : x(T::from_bits(raw.x)), y(T::from_bits(raw.y)) {}
  constexpr SixteenBitsPair(const SixteenBitsPair&) = default;
  EMULATOR_ASSIGNMENTS(SixteenBitsPair, T, &made.x, &made.y)
  constexpr operator Raw2() const { return {x.bits, y.bits}; }

  // Of the numbers of a pair; the operators of the numbers may be switched off.
  template <typename Operation>
  static SixteenBitsPair of_each(SixteenBitsPair a, SixteenBitsPair b, Operation operation) {
    return {T::of(operation(a.x.value(), b.x.value())), T::of(operation(a.y.value(), b.y.value()))};
  }
  template <typename Comparison>
  static bool for_both(SixteenBitsPair a, SixteenBitsPair b, Comparison comparison) {
    return comparison(a.x.value(), b.x.value()) && comparison(a.y.value(), b.y.value());
  }

  // clang-format off
#define EMULATOR_OF_PAIRS requires Relatives<format>::has_pair_operators
  friend SixteenBitsPair operator+(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return of_each(a, b, std::plus<>()); }
  friend SixteenBitsPair operator-(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return of_each(a, b, std::minus<>()); }
  friend SixteenBitsPair operator*(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return of_each(a, b, std::multiplies<>()); }
  friend SixteenBitsPair operator/(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return of_each(a, b, std::divides<>()); }
  SixteenBitsPair operator+() const EMULATOR_OF_PAIRS { return *this; }
  SixteenBitsPair operator-() const EMULATOR_OF_PAIRS { return {T::of(-x.value()), T::of(-y.value())}; }
  SixteenBitsPair& operator+=(SixteenBitsPair other) EMULATOR_OF_PAIRS { return *this = *this + other; }
  SixteenBitsPair& operator-=(SixteenBitsPair other) EMULATOR_OF_PAIRS { return *this = *this - other; }
  SixteenBitsPair& operator*=(SixteenBitsPair other) EMULATOR_OF_PAIRS { return *this = *this * other; }
  SixteenBitsPair& operator/=(SixteenBitsPair other) EMULATOR_OF_PAIRS { return *this = *this / other; }
  SixteenBitsPair& operator++() EMULATOR_OF_PAIRS { return *this += SixteenBitsPair(T::of(1), T::of(1)); }
  SixteenBitsPair& operator--() EMULATOR_OF_PAIRS { return *this -= SixteenBitsPair(T::of(1), T::of(1)); }
  SixteenBitsPair operator++(int) EMULATOR_OF_PAIRS { return std::exchange(*this, *this + SixteenBitsPair(T::of(1), T::of(1))); }
  SixteenBitsPair operator--(int) EMULATOR_OF_PAIRS { return std::exchange(*this, *this - SixteenBitsPair(T::of(1), T::of(1))); }
  // True if it holds for both; `!=` is true if both differ.
  friend bool operator==(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return for_both(a, b, std::equal_to<>()); }
  friend bool operator!=(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return for_both(a, b, std::not_equal_to<>()); }
  friend bool operator<(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return for_both(a, b, std::less<>()); }
  friend bool operator<=(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return for_both(a, b, std::less_equal<>()); }
  friend bool operator>(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return for_both(a, b, std::greater<>()); }
  friend bool operator>=(SixteenBitsPair a, SixteenBitsPair b) EMULATOR_OF_PAIRS { return for_both(a, b, std::greater_equal<>()); }
#undef EMULATOR_OF_PAIRS
  // clang-format on
};

}  // namespace emulator::sixteen_bits
