// PTX's cvt: `convert<std::int32_t, float, FE_TOWARDZERO>(a)` is cvt.rzi.s32.f32.
#pragma once

#include "emulator/ptx/arithmetic.h"

EMULATOR_BEGIN
namespace emulator::ptx {

// A number in the format of `To`, rounded once.
template <typename To, typename From>
To round_number(From value, int mode) {
  if constexpr (is_16_bit_float<To>)
    return To::rounded(to_double(value), mode);
  else if constexpr (std::is_same_v<To, float>)
    return rounded_float(value, mode);
  else
    return rounded_double(value, mode);
}

template <typename T>
auto as_number(T value) {
  if constexpr (is_16_bit_float<T>)
    return float(value);
  else
    return value;
}

template <typename To, typename From, int mode = FE_TONEAREST>
To convert(From value) {
  if constexpr (std::is_integral_v<To> && std::is_integral_v<From>)
    return static_cast<To>(value);
  else if constexpr (std::is_integral_v<To>)
    return to_integer<To>(as_number(value), mode);
  else
    return round_number<To>(as_number(value), mode);
}

// To a whole number of the same type: cvt.rni.f32.f32.
template <typename T, int mode>
T round_to_whole(T value) {
  const auto number = as_number(value);
  return T(mode == FE_TONEAREST    ? std::nearbyint(number)
           : mode == FE_TOWARDZERO ? std::trunc(number)
           : mode == FE_UPWARD     ? std::ceil(number)
                                   : std::floor(number));
}

// .sat of an integer: to the ends of the range.
template <typename To, typename From>
To convert_saturated(From value) {
  if constexpr (std::is_integral_v<From>) {
    const auto wide = static_cast<__int128>(value);
    const auto least = static_cast<__int128>(std::numeric_limits<To>::min()),
               most = static_cast<__int128>(std::numeric_limits<To>::max());
    return static_cast<To>(wide < least ? least : wide > most ? most : wide);
  } else {
    return convert<To>(value);
  }
}

// Two floats: `b` is the lower one.
template <typename Pair, int mode>
Pair convert_pair(float a, float b) {
  using T = decltype(Pair::x);
  return Pair(T::rounded(b, mode), T::rounded(a, mode));
}

// cvt.rna.tf32.f32, or .rn and .rz
template <int mode>
std::uint32_t convert_to_tf32(float value) {
  if constexpr (mode == kNearestAway) return __builtin_bit_cast(std::uint32_t, round_to_tf32(value));
  return round_to_format(value, kTF32, mode) << 13;
}

// cvt.rn.satfinite.e4m3x2.f32: two floats as numbers of 8 bits. `b` is the lower one.
template <bool is_e4m3>
std::uint16_t convert_to_8_bits(float a, float b) {
  constexpr FloatFormat format = is_e4m3 ? kE4M3 : kE5M2;
  return std::uint16_t(round_to_finite(a, format) << 8 | round_to_finite(b, format));
}
template <bool is_e4m3>
__half2 convert_from_8_bits(std::uint16_t pair) {
  constexpr FloatFormat format = is_e4m3 ? kE4M3 : kE5M2;
  return {read_format(pair & 255, format), read_format(pair >> 8, format)};
}

}  // namespace emulator::ptx
EMULATOR_END
