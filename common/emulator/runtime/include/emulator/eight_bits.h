// The 8-bit floating-point types. They have conversions and no arithmetic. A number that is too large becomes
// the largest one.
#pragma once

#include "emulator/sixteen_bits.h"

// A namespace of their own, as for the types of 16 bits.
namespace emulator::eight_bits {

template <const FloatFormat& format>
struct EightBits {
  unsigned char __x;

  EightBits() = default;
  template <typename T>
  requires std::is_arithmetic_v<T> explicit EightBits(T value)
      : __x(static_cast<unsigned char>(round_to_finite(to_double(value), format))) {}
  template <const FloatFormat& other>
  explicit EightBits(sixteen_bits::SixteenBits<other> value) : EightBits(float(value)) {}

  template <typename T>
  requires std::is_floating_point_v<T> explicit operator T() const {
    return T(read_format(__x, format));
  }
  template <typename T>
  requires std::is_integral_v<T> explicit operator T() const {
    return to_integer<T>(float(*this), FE_TOWARDZERO);
  }
  explicit operator bool() const { return __x & 0x7f; }
  template <const FloatFormat& other>
  explicit operator sixteen_bits::SixteenBits<other>() const {
    return float(*this);
  }
};

// Two of them, loaded and stored as one; the lower one is in the lower bits.
template <const FloatFormat& format>
struct alignas(2) EightBitsPair {
  unsigned short __x;

  EightBitsPair() = default;
  explicit EightBitsPair(float2 value) : EightBitsPair(value.x, value.y) {}
  explicit EightBitsPair(double2 value) : EightBitsPair(value.x, value.y) {}
  template <const FloatFormat& other>
  explicit EightBitsPair(sixteen_bits::SixteenBitsPair<other> value)
      : EightBitsPair(float(value.x), float(value.y)) {}

  explicit operator float2() const { return {number(0), number(1)}; }
  template <const FloatFormat& other>
  explicit operator sixteen_bits::SixteenBitsPair<other>() const {
    return {number(0), number(1)};
  }

 private:
  template <typename T>
  EightBitsPair(T low, T high)
      : __x(static_cast<unsigned short>(EightBits<format>(low).__x | EightBits<format>(high).__x << 8)) {}
  float number(int i) const { return read_format(__x >> 8 * i & 255, format); }
};

template <const FloatFormat& format>
struct alignas(4) EightBitsFour {
  unsigned int __x;

  EightBitsFour() = default;
  explicit EightBitsFour(float4 value) : EightBitsFour(float2{value.x, value.y}, float2{value.z, value.w}) {}
  template <const FloatFormat& other>
  explicit EightBitsFour(sixteen_bits::SixteenBitsPair<other> low, sixteen_bits::SixteenBitsPair<other> high)
      : EightBitsFour(EightBitsPair<format>(low), EightBitsPair<format>(high)) {}

  explicit operator float4() const {
    const auto number = [this](int i) { return read_format(__x >> 8 * i & 255, format); };
    return {number(0), number(1), number(2), number(3)};
  }

 private:
  EightBitsFour(float2 low, float2 high)
      : EightBitsFour(EightBitsPair<format>(low), EightBitsPair<format>(high)) {}
  EightBitsFour(EightBitsPair<format> low, EightBitsPair<format> high)
      : __x(low.__x | unsigned(high.__x) << 16) {}
};

}  // namespace emulator::eight_bits
