// PTX's instructions for bits.
#pragma once

#include "emulator/ptx/registers.h"

EMULATOR_BEGIN
namespace emulator::ptx {

// `and_` and its like: the names of the instructions are words of C++.
// clang-format off
template <typename T> T and_(T a, T b) { return T(a & b); }
template <typename T> T or_(T a, T b) { return T(a | b); }
template <typename T> T xor_(T a, T b) { return T(a ^ b); }
template <typename T> T not_(T a) { return std::is_same_v<T, bool> ? T(!a) : T(~a); }
template <typename T> T cnot(T a) { return T(a == 0); }
// clang-format on
// A shift by the width or more leaves no bits but the sign.
template <typename T>
T shl(T a, std::uint32_t count) {
  return count >= 8 * sizeof(T) ? T(0) : T(a << count);
}
template <typename T>
T shr(T a, std::uint32_t count) {
  if (count < 8 * sizeof(T)) return T(a >> count);
  return a < 0 ? T(-1) : T(0);
}
// The leading zeros of the lowest `width` bits.
inline std::uint32_t clz_of(std::uint64_t bits, unsigned width) {
  return bits ? unsigned(__builtin_clzll(bits)) + width - 64 : width;
}
template <typename T>
std::uint32_t popc(T a) {
  return std::uint32_t(__builtin_popcountll(std::uint64_t(a)));
}
template <typename T>
std::uint32_t clz(T a) {
  return clz_of(std::uint64_t(a), 8 * sizeof(T));
}
template <typename T>
T brev(T a) {
  if constexpr (sizeof(T) == 8)
    return __brevll(a);
  else
    return __brev(a);
}
// `length` bits from `position` on. The highest is the sign of a signed number.
template <typename T>
T bfe(T a, std::uint32_t position, std::uint32_t length) {
  using Unsigned = std::make_unsigned_t<T>;
  constexpr std::uint32_t width = 8 * sizeof(T);
  position &= 255, length &= 255;
  const std::uint32_t last = std::min(position + length - 1, width - 1);
  const bool is_negative = std::is_signed_v<T> && length && Unsigned(a) >> last & 1;
  Unsigned field = is_negative ? ~Unsigned(0) : 0;
  for (std::uint32_t i = 0; i < length && i < width; i++) {
    const bool bit = position + i < width ? Unsigned(a) >> (position + i) & 1 : is_negative;
    field = (field & ~(Unsigned(1) << i)) | Unsigned(bit) << i;
  }
  return T(field);
}
template <typename T>
T bfi(T field, T into, std::uint32_t position, std::uint32_t length) {
  position &= 255, length &= 255;
  for (std::uint32_t i = 0; i < length && position + i < 8 * sizeof(T); i++)
    into = (into & ~(T(1) << (position + i))) | (field >> i & 1) << (position + i);
  return into;
}
// The highest bit that differs from the sign, counted from the lowest or, with .shiftamt, from the highest.
template <typename T, bool counts_from_highest = false>
std::uint32_t bfind(T a) {
  const auto bits = static_cast<std::make_unsigned_t<T>>(a < 0 ? T(~a) : a);
  if (!bits) return 0xffffffff;
  const auto zeros = clz_of(std::uint64_t(bits), 8 * sizeof(bits));
  return counts_from_highest ? zeros : 8 * sizeof(T) - 1 - zeros;
}
// Four of the eight bytes of b and a; bit 3 of a selector repeats the sign of the byte.
inline std::uint32_t prmt(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
  const std::uint64_t bytes = std::uint64_t(b) << 32 | a;
  std::uint32_t chosen = 0;
  for (int i = 0; i < 4; i++) {
    const std::uint32_t which = selector >> 4 * i;
    std::uint32_t byte = std::uint32_t(bytes >> (which & 7) * 8) & 255;
    if (which & 8) byte = byte >> 7 ? 255 : 0;
    chosen |= byte << 8 * i;
  }
  return chosen;
}
// Any function of three bits: bit 4a + 2b + c of `table` is its value.
inline std::uint32_t lop3(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t table) {
  std::uint32_t result = 0;
  for (unsigned row = 0; row < 8; row++)
    if (table >> row & 1) result |= (row & 4 ? a : ~a) & (row & 2 ? b : ~b) & (row & 1 ? c : ~c);
  return result;
}

}  // namespace emulator::ptx
EMULATOR_END
