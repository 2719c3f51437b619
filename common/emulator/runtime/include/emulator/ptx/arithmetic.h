// PTX's arithmetic: `add<float, FE_UPWARD>(a, b)` is add.rp.f32. Approximate instructions are computed
// exactly.
#pragma once

#include "emulator/ptx/registers.h"

EMULATOR_BEGIN
namespace emulator::ptx {

template <typename T>
constexpr bool is_16_bit_float = std::is_same_v<T, __half> || std::is_same_v<T, __nv_bfloat16>;
template <typename T>
constexpr bool is_pair = std::is_same_v<T, __half2> || std::is_same_v<T, __nv_bfloat162>;
template <typename T>
constexpr bool is_float = std::is_floating_point_v<T>;

template <typename T>
T flush(T value) {  // .ftz
  if constexpr (std::is_same_v<T, float>)
    if (std::fpclassify(value) == FP_SUBNORMAL) return std::copysign(0.0f, value);
  return value;
}

// .sat of a float. That of an integer is in `add_saturated` and `sub_saturated`.
template <typename T>
T saturate(T value) {
  if constexpr (is_pair<T>)
    return {saturate(value.x), saturate(value.y)};
  else
    return value > T(0.0f) ? (value < T(1.0f) ? value : T(1.0f)) : T(0.0f);
}

template <typename T>
T relu(T value) {  // .relu: NaN stays
  if constexpr (is_pair<T>)
    return {relu(value.x), relu(value.y)};
  else
    return value < T(0.0f) || value == T(0.0f) ? T(0.0f) : value;
}

template <typename T, int mode = FE_TONEAREST>
T add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return wrapping_add(a, b);
  else if constexpr (is_float<T>)
    return mode == FE_TONEAREST ? a + b : rounded_add(a, b, mode);
  else
    return a + b;
}
template <typename T, int mode = FE_TONEAREST>
T sub(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return wrapping_add(a, T(0 - std::make_unsigned_t<T>(b)));
  else if constexpr (is_float<T>)
    return mode == FE_TONEAREST ? a - b : rounded_add(a, -b, mode);
  else
    return a - b;
}
inline std::int32_t add_saturated(std::int32_t a, std::int32_t b) {
  return std::int32_t(std::clamp<std::int64_t>(std::int64_t(a) + b, INT_MIN, INT_MAX));
}
inline std::int32_t sub_saturated(std::int32_t a, std::int32_t b) {
  return std::int32_t(std::clamp<std::int64_t>(std::int64_t(a) - b, INT_MIN, INT_MAX));
}
template <typename T, int mode = FE_TONEAREST>
T mul(T a, T b) {
  if constexpr (is_float<T>)
    return mode == FE_TONEAREST ? a * b : rounded_multiply(a, b, mode);
  else
    return a * b;
}
template <typename T, int mode = FE_TONEAREST>
T fma(T a, T b, T c) {
  if constexpr (is_float<T>)
    return mode == FE_TONEAREST ? std::fma(a, b, c) : rounded_fma(a, b, c, mode);
  else if constexpr (is_pair<T>)
    return __hfma2(a, b, c);
  else
    return __hfma(a, b, c);
}
template <typename T, int mode = FE_TONEAREST>
T div(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return b == 0 ? T(-1) : std::is_signed_v<T> && b == T(-1) ? T(0 - std::make_unsigned_t<T>(a)) : T(a / b);
  else
    return mode == FE_TONEAREST ? a / b : rounded_divide(a, b, mode);
}
template <typename T>
T rem(T a, T b) {
  return b == 0 ? a : std::is_signed_v<T> && b == T(-1) ? T(0) : T(a % b);
}

// ---- integers: the product has twice as many bits

template <typename T>
using Product = std::conditional_t<
    sizeof(T) == 8, std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128>,
    std::conditional_t<sizeof(T) == 4, std::conditional_t<std::is_signed_v<T>, std::int64_t, std::uint64_t>,
                       std::conditional_t<std::is_signed_v<T>, std::int32_t, std::uint32_t>>>;
template <typename T>
Product<T> mul_wide(T a, T b) {
  return Product<T>(a) * Product<T>(b);
}
template <typename T>
T mul_lo(T a, T b) {
  return static_cast<T>(mul_wide(a, b));
}
template <typename T>
T mul_hi(T a, T b) {
  return static_cast<T>(mul_wide(a, b) >> 8 * sizeof(T));
}
template <typename T>
T mad_lo(T a, T b, T c) {
  return wrapping_add(mul_lo(a, b), c);
}
template <typename T>
T mad_hi(T a, T b, T c) {
  return wrapping_add(mul_hi(a, b), c);
}
template <typename T>
Product<T> mad_wide(T a, T b, Product<T> c) {
  return wrapping_add(mul_wide(a, b), c);
}

// ---- one operand, or two of which one is chosen

template <typename T>
T neg(T a) {
  if constexpr (std::is_integral_v<T>)
    return T(0 - std::make_unsigned_t<T>(a));
  else
    return -a;
}
template <typename T>
T abs(T a) {
  if constexpr (std::is_integral_v<T>)
    return a < 0 ? neg(a) : a;
  else if constexpr (is_float<T>)
    return std::fabs(a);
  else if constexpr (is_pair<T>)
    return __habs2(a);
  else
    return __habs(a);
}
// Of two floats, NaN loses unless it `keeps_nan` (.NaN); -0 is less than +0.
template <typename T, bool keeps_nan = false>
T min(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return std::min(a, b);
  else if constexpr (is_pair<T>)
    return {min<decltype(a.x), keeps_nan>(a.x, b.x), min<decltype(a.x), keeps_nan>(a.y, b.y)};
  else if (a != a || b != b)
    return keeps_nan || (a != a && b != b) ? T(NAN) : a != a ? b : a;
  else if (a == b)
    return std::signbit(float(a)) ? a : b;
  else
    return a < b ? a : b;
}
template <typename T, bool keeps_nan = false>
T max(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return std::max(a, b);
  else if constexpr (is_pair<T>)
    return {max<decltype(a.x), keeps_nan>(a.x, b.x), max<decltype(a.x), keeps_nan>(a.y, b.y)};
  else if (a != a || b != b)
    return keeps_nan || (a != a && b != b) ? T(NAN) : a != a ? b : a;
  else if (a == b)
    return std::signbit(float(a)) ? b : a;
  else
    return a > b ? a : b;
}
// The sign of `a` with the rest of `b`.
template <typename T>
T copysign(T a, T b) {
  return std::copysign(b, a);
}

// A function of a number, or of both of a pair, rounded once.
template <typename T, typename Function>
T rounded_once(T a, Function function) {
  if constexpr (is_pair<T>)
    return {rounded_once(a.x, function), rounded_once(a.y, function)};
  else
    return T(function(double(float(a))));
}

template <typename T, int mode = FE_TONEAREST>
T sqrt(T a) {
  return rounded_root(a, mode);
}
template <typename T, int mode = FE_TONEAREST>
T rcp(T a) {
  return rounded_divide(T(1), a, mode);
}
// clang-format off
template <typename T> T rsqrt(T a) { return T(1 / std::sqrt(double(a))); }
template <typename T> T sin(T a) { return rounded_once(a, [](double v) { return std::sin(v); }); }
template <typename T> T cos(T a) { return rounded_once(a, [](double v) { return std::cos(v); }); }
template <typename T> T lg2(T a) { return rounded_once(a, [](double v) { return std::log2(v); }); }
template <typename T> T ex2(T a) { return rounded_once(a, [](double v) { return std::exp2(v); }); }
template <typename T> T tanh(T a) { return rounded_once(a, [](double v) { return std::tanh(v); }); }
// clang-format on

// ---- comparisons: `ltu` is also true if a number is NaN, of integers `lo`, `ls`, `hi`, `hs` are unsigned

template <typename T>
bool is_nan(T a) {
  if constexpr (std::is_integral_v<T>)
    return false;
  else
    return a != a;
}
// clang-format off
template <typename T> bool eq(T a, T b) { return a == b; }
template <typename T> bool ne(T a, T b) { return !is_nan(a) && !is_nan(b) && a != b; }
template <typename T> bool lt(T a, T b) { return a < b; }
template <typename T> bool le(T a, T b) { return a <= b; }
template <typename T> bool gt(T a, T b) { return a > b; }
template <typename T> bool ge(T a, T b) { return a >= b; }
template <typename T> bool num(T a, T b) { return !is_nan(a) && !is_nan(b); }
template <typename T> bool nan(T a, T b) { return !num(a, b); }
template <typename T> bool equ(T a, T b) { return nan(a, b) || a == b; }
template <typename T> bool neu(T a, T b) { return nan(a, b) || a != b; }
template <typename T> bool ltu(T a, T b) { return nan(a, b) || a < b; }
template <typename T> bool leu(T a, T b) { return nan(a, b) || a <= b; }
template <typename T> bool gtu(T a, T b) { return nan(a, b) || a > b; }
template <typename T> bool geu(T a, T b) { return nan(a, b) || a >= b; }
template <typename T> bool lo(T a, T b) { return a < b; }
template <typename T> bool ls(T a, T b) { return a <= b; }
template <typename T> bool hi(T a, T b) { return a > b; }
template <typename T> bool hs(T a, T b) { return a >= b; }
// clang-format on
template <typename T>
T selp(T a, T b, bool chooses_a) {
  return chooses_a ? a : b;
}

}  // namespace emulator::ptx
EMULATOR_END
