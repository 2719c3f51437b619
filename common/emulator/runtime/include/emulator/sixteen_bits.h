// The 16-bit floating-point types: half and bfloat16, and what CUDA offers for both of them.
#pragma once

#include <cstdint>
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

// The types that convert to and from those of a format without a change of bits: CUDA's structures of bits,
// and the type in torch's headers, which need not be included. Its header says whether the conversion from it
// is explicit.
template <const FloatFormat& format>
struct Relatives;

template <const FloatFormat& format>
struct alignas(2) SixteenBits {
  using Raw = typename Relatives<format>::Raw;
  using Torch = typename Relatives<format>::Torch;
  template <typename T, bool is_explicit>
  static constexpr bool kConverts =
      std::is_same_v<T, Torch> && is_explicit == Relatives<format>::from_torch_is_explicit;
  std::uint16_t bits;

  SixteenBits() = default;
  template <typename T>
  requires std::is_arithmetic_v<T> SixteenBits(T value) : bits(round(to_double(value))) {}
  constexpr SixteenBits(Raw raw) : bits(raw.x) {}
  template <typename T>
  requires kConverts<T, false> SixteenBits(const T& value) : bits(value.x) {}
  template <typename T>
  requires kConverts<T, true> explicit SixteenBits(const T& value) : bits(value.x) {}

  static constexpr SixteenBits from_bits(std::uint16_t bits) { return SixteenBits(Raw{bits}); }
  static SixteenBits rounded(double value, int mode) {
    return from_bits(std::uint16_t(round_to_format(value, format, mode)));
  }

  operator float() const { return read_format(bits, format); }
  template <typename T>
  requires std::is_integral_v<T> operator T() const {
    return to_integer<T>(float(*this), FE_TOWARDZERO);
  }
  operator bool() const { return bits << 1 & 0xffff; }
  constexpr operator Raw() const { return {bits}; }
  template <typename T>
  requires std::is_same_v<T, Torch> operator T() const {
    return T(bits, T::from_bits());
  }

  friend SixteenBits operator+(SixteenBits a, SixteenBits b) { return float(a) + float(b); }
  friend SixteenBits operator-(SixteenBits a, SixteenBits b) { return float(a) - float(b); }
  friend SixteenBits operator*(SixteenBits a, SixteenBits b) { return float(a) * float(b); }
  friend SixteenBits operator/(SixteenBits a, SixteenBits b) { return float(a) / float(b); }
  SixteenBits operator+() const { return *this; }
  SixteenBits operator-() const { return -float(*this); }
  SixteenBits& operator+=(SixteenBits other) { return *this = *this + other; }
  SixteenBits& operator-=(SixteenBits other) { return *this = *this - other; }
  SixteenBits& operator*=(SixteenBits other) { return *this = *this * other; }
  SixteenBits& operator/=(SixteenBits other) { return *this = *this / other; }
  SixteenBits& operator++() { return *this += 1; }
  SixteenBits& operator--() { return *this -= 1; }
  SixteenBits operator++(int) { return std::exchange(*this, *this + 1); }
  SixteenBits operator--(int) { return std::exchange(*this, *this - 1); }
  friend bool operator==(SixteenBits a, SixteenBits b) { return float(a) == float(b); }
  friend bool operator!=(SixteenBits a, SixteenBits b) { return float(a) != float(b); }
  friend bool operator<(SixteenBits a, SixteenBits b) { return float(a) < float(b); }
  friend bool operator<=(SixteenBits a, SixteenBits b) { return float(a) <= float(b); }
  friend bool operator>(SixteenBits a, SixteenBits b) { return float(a) > float(b); }
  friend bool operator>=(SixteenBits a, SixteenBits b) { return float(a) >= float(b); }

 private:
  static std::uint16_t round(double value) { return std::uint16_t(round_to_format(value, format)); }
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

  friend SixteenBitsPair operator+(SixteenBitsPair a, SixteenBitsPair b) { return {a.x + b.x, a.y + b.y}; }
  friend SixteenBitsPair operator-(SixteenBitsPair a, SixteenBitsPair b) { return {a.x - b.x, a.y - b.y}; }
  friend SixteenBitsPair operator*(SixteenBitsPair a, SixteenBitsPair b) { return {a.x * b.x, a.y * b.y}; }
  friend SixteenBitsPair operator/(SixteenBitsPair a, SixteenBitsPair b) { return {a.x / b.x, a.y / b.y}; }
  SixteenBitsPair operator+() const { return *this; }
  SixteenBitsPair operator-() const { return {-x, -y}; }
  SixteenBitsPair& operator+=(SixteenBitsPair other) { return *this = *this + other; }
  SixteenBitsPair& operator-=(SixteenBitsPair other) { return *this = *this - other; }
  SixteenBitsPair& operator*=(SixteenBitsPair other) { return *this = *this * other; }
  SixteenBitsPair& operator/=(SixteenBitsPair other) { return *this = *this / other; }
  SixteenBitsPair& operator++() { return *this += SixteenBitsPair(1, 1); }
  SixteenBitsPair& operator--() { return *this -= SixteenBitsPair(1, 1); }
  SixteenBitsPair operator++(int) { return std::exchange(*this, *this + SixteenBitsPair(1, 1)); }
  SixteenBitsPair operator--(int) { return std::exchange(*this, *this - SixteenBitsPair(1, 1)); }
  // True if it holds for both; `!=` is true if both differ.
  friend bool operator==(SixteenBitsPair a, SixteenBitsPair b) { return a.x == b.x && a.y == b.y; }
  friend bool operator!=(SixteenBitsPair a, SixteenBitsPair b) { return a.x != b.x && a.y != b.y; }
  friend bool operator<(SixteenBitsPair a, SixteenBitsPair b) { return a.x < b.x && a.y < b.y; }
  friend bool operator<=(SixteenBitsPair a, SixteenBitsPair b) { return a.x <= b.x && a.y <= b.y; }
  friend bool operator>(SixteenBitsPair a, SixteenBitsPair b) { return a.x > b.x && a.y > b.y; }
  friend bool operator>=(SixteenBitsPair a, SixteenBitsPair b) { return a.x >= b.x && a.y >= b.y; }
};

}  // namespace emulator::sixteen_bits
