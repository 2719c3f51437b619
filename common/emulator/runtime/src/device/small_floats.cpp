#include "emulator/small_floats.h"

#include <algorithm>
#include <bit>

namespace emulator {
namespace {

constexpr int kDoubleMantissa = 52;

// What rounding cuts off, and half of the last bit that stays.
bool rounds_up(std::uint64_t rest, std::uint64_t half, bool is_odd, bool is_negative, int mode) {
  switch (mode) {
    case FE_TONEAREST:
      return rest > half || (rest == half && is_odd);
    case kNearestAway:
      return rest >= half;
    case FE_TOWARDZERO:
      return false;
    default:
      return rest > 0 && (mode == FE_DOWNWARD) == is_negative;
  }
}

}  // namespace

std::uint32_t round_to_format(double value, FloatFormat format, int mode) {
  const std::uint32_t infinity = format.infinity();
  const auto bits = std::bit_cast<std::uint64_t>(value);
  const bool is_negative = bits >> 63;
  const std::uint32_t sign = is_negative ? format.nan() + 1 : 0;
  if (std::isnan(value)) return format.nan();
  if (std::isinf(value)) return sign | infinity;
  if (value == 0) return sign;
  const int least = 1 - format.bias(), exponent = int(bits >> kDoubleMantissa & 2047) - 1023;
  const std::uint64_t one = 1, significand = (bits & ((one << kDoubleMantissa) - 1)) | one << kDoubleMantissa;
  // A subnormal number has fewer bits. A shift by more than 62 leaves less than half of the last bit.
  const int shift = std::min(kDoubleMantissa - format.mantissa_bits + std::max(least - exponent, 0), 62);
  const std::uint64_t whole = significand >> shift, rest = significand & ((one << shift) - 1);
  const bool is_up = rounds_up(rest, one << (shift - 1), whole & 1, is_negative, mode);
  if (exponent <= format.bias() + !format.has_infinity) {
    // The leading one of a normal number adds one to its exponent.
    const std::uint32_t rounded =
        (std::uint32_t(std::max(exponent - least, 0)) << format.mantissa_bits) + std::uint32_t(whole) + is_up;
    if (rounded < infinity) return sign | rounded;
  }
  const bool is_away =
      mode == FE_TONEAREST || mode == kNearestAway || rounds_up(1, 0, true, is_negative, mode);
  return sign | (is_away ? infinity : infinity - 1);
}

std::uint32_t round_to_finite(double value, FloatFormat format) {
  const std::uint32_t bits = round_to_format(value, format);
  const bool is_too_large = (bits & format.nan()) > format.largest() && !std::isnan(value);
  return is_too_large ? (bits & ~format.nan()) | format.largest() : bits;
}

float read_format(std::uint32_t bits, FloatFormat format) {
  if (!format.has_infinity && (bits & format.nan()) == format.nan()) return NAN;
  const int to_float = 23 - format.mantissa_bits;
  if (format.exponent_bits == 8) return std::bit_cast<float>(bits << to_float);
  const std::uint32_t exponents = (1u << format.exponent_bits) - 1,
                      exponent = bits >> format.mantissa_bits & exponents,
                      mantissa = bits & ((1u << format.mantissa_bits) - 1),
                      sign = bits >> (format.exponent_bits + format.mantissa_bits) << 31;
  if (exponent == 0) {
    const float magnitude = std::ldexp(float(mantissa), 1 - format.bias() - format.mantissa_bits);
    return sign ? -magnitude : magnitude;
  }
  const bool is_number = exponent < exponents || !format.has_infinity;
  const std::uint32_t of_float = is_number ? exponent + 127 - std::uint32_t(format.bias()) : 255;
  return std::bit_cast<float>(sign | of_float << 23 | mantissa << to_float);
}

float round_to_tf32(float value) {
  const std::uint32_t bits = std::isnan(value) ? std::bit_cast<std::uint32_t>(value) >> 13
                                               : round_to_format(value, kTF32, kNearestAway);
  return std::bit_cast<float>(bits << 13);
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
