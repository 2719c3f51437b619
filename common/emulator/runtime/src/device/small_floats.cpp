#include "emulator/small_floats.h"

#include <algorithm>
#include <bit>

namespace emulator {
namespace {

bool rounds_up(double whole, double rest, bool is_negative, int mode) {
  switch (mode) {
    case FE_TONEAREST:
      return rest > 0.5 || (rest == 0.5 && std::fmod(whole, 2) == 1);
    case kNearestAway:
      return rest >= 0.5;
    case FE_TOWARDZERO:
      return false;
    default:
      return rest > 0 && (mode == FE_DOWNWARD) == is_negative;
  }
}

}  // namespace

std::uint32_t round_to_format(double value, FloatFormat format, int mode) {
  const int all = format.exponent_bits + format.mantissa_bits, bias = (1 << (format.exponent_bits - 1)) - 1;
  const std::uint32_t infinity = ((1u << format.exponent_bits) - 1) << format.mantissa_bits;
  const bool is_negative = std::signbit(value);
  const std::uint32_t sign = std::uint32_t(is_negative) << all;
  if (std::isnan(value)) return (1u << all) - 1;
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int least = 1 - bias, exponent = std::max(std::ilogb(value), least);
  if (exponent <= bias) {
    const double scaled = std::ldexp(std::fabs(value), format.mantissa_bits - exponent);  // exact
    const double whole = std::floor(scaled);
    const bool is_up = rounds_up(whole, scaled - whole, is_negative, mode);
    // The leading one of a normal number adds one to its exponent.
    const std::uint32_t bits =
        (std::uint32_t(exponent - least) << format.mantissa_bits) + std::uint32_t(whole) + is_up;
    if (bits < infinity) return sign | bits;
  }
  const bool is_away = mode == FE_TONEAREST || mode == kNearestAway || rounds_up(0, 1, is_negative, mode);
  return sign | (is_away ? infinity : infinity - 1);
}

float read_format(std::uint32_t bits, FloatFormat format) {
  const std::uint32_t exponents = (1u << format.exponent_bits) - 1,
                      exponent = bits >> format.mantissa_bits & exponents,
                      mantissa = bits & ((1u << format.mantissa_bits) - 1);
  const bool is_negative = bits >> (format.exponent_bits + format.mantissa_bits) & 1;
  const int bias = int(exponents >> 1);
  float magnitude;
  if (exponent == exponents)
    magnitude =
        mantissa ? std::bit_cast<float>(0x7f800000u | mantissa << (23 - format.mantissa_bits)) : INFINITY;
  else if (exponent == 0)
    magnitude = std::ldexp(float(mantissa), 1 - bias - format.mantissa_bits);
  else
    magnitude =
        std::ldexp(float(mantissa | 1u << format.mantissa_bits), int(exponent) - bias - format.mantissa_bits);
  return is_negative ? -magnitude : magnitude;
}

float round_to_tf32(float value) {
  return std::bit_cast<float>(round_to_format(value, kTF32, kNearestAway) << 13);
}

double multiply_add_to_odd(double a, double b, double c) {
  const double product = a * b, sum = product + c;
  if (!std::isfinite(sum)) return sum;
  const double taken = sum - product, error = (product - (sum - taken)) + (c - taken);
  auto bits = std::bit_cast<std::uint64_t>(sum);
  if (error == 0 || bits & 1) return sum;
  return std::bit_cast<double>((error > 0) == (sum > 0) ? bits + 1 : bits - 1);
}

}  // namespace emulator
