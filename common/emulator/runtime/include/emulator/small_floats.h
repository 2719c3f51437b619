// Floating-point formats with fewer bits than float. Results are computed in float or double and rounded
// once.
#pragma once

#include <cfenv>
#include <cmath>
#include <cstdint>
#include <type_traits>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

// The bits of a number, from the highest: its sign, its exponent, its mantissa.
struct FloatFormat {
  int exponent_bits, mantissa_bits;
  bool has_infinity = true;  // if not, the largest exponent is one of numbers, and only all ones are NaN

  constexpr int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  constexpr std::uint32_t nan() const { return (1u << (exponent_bits + mantissa_bits)) - 1; }
  constexpr std::uint32_t infinity() const {
    return has_infinity ? ((1u << exponent_bits) - 1) << mantissa_bits : nan();
  }
  constexpr std::uint32_t largest() const { return infinity() - 1; }
};
inline constexpr FloatFormat kHalf{5, 10}, kBFloat16{8, 7}, kTF32{8, 10}, kE5M2{5, 2}, kE4M3{4, 3, false};

constexpr int kNearestAway = -1;  // ties away from zero: a rounding mode of PTX that <cfenv> lacks

// The bits of the number next to `value`, in one of <cfenv>'s rounding modes. Subnormal numbers are kept. NaN
// becomes the NaN that a GPU makes: all bits but the sign are set. So does infinity in a format without it.
std::uint32_t round_to_format(double value, FloatFormat format, int mode = FE_TONEAREST);
std::uint32_t round_to_finite(double value, FloatFormat format);  // the largest number if it is too large
float read_format(std::uint32_t bits, FloatFormat format);

float round_to_tf32(float value);  // as cvt.rna.tf32.f32, which keeps the upper bits of NaN

// a * b + c with the last bit set if anything was cut off, so that rounding it again is like rounding once.
// The product must be exact.
double multiply_add_to_odd(double a, double b, double c);

// A number as a double. The last bits of a larger integer are combined into one, which is enough for
// rounding.
template <typename T>
double to_double(T value) {
  if constexpr (std::is_floating_point_v<T> || sizeof(T) < 8) {
    return double(value);
  } else {
    const bool is_negative = value < 0;
    auto magnitude = std::make_unsigned_t<T>(value);
    if (is_negative) magnitude = 0 - magnitude;
    int exponent = 0;
    for (; magnitude >> 53; exponent++) magnitude = magnitude >> 1 | (magnitude & 1);
    const double result = std::ldexp(double(magnitude), exponent);
    return is_negative ? -result : result;
  }
}

}  // namespace emulator
EMULATOR_END
