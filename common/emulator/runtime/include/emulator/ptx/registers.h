// PTX's registers: bits without a type. An instruction says how it reads them.
#pragma once

#include <cstdint>
#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"

EMULATOR_BEGIN
namespace emulator::ptx {

using Wide = unsigned __int128;

template <std::size_t size>
using UnsignedOf = std::conditional_t<
    size == 1, std::uint8_t,
    std::conditional_t<
        size == 2, std::uint16_t,
        std::conditional_t<size == 4, std::uint32_t, std::conditional_t<size == 8, std::uint64_t, Wide>>>>;

template <typename T>
UnsignedOf<sizeof(T)> bits_of(const T& value) {
  UnsignedOf<sizeof(T)> bits;
  __builtin_memcpy(&bits, &value, sizeof(T));
  return bits;
}

// What an instruction for `T` reads of a register: the lowest bits.
template <typename T, typename Register>
T get(Register bits) {
  if constexpr (std::is_same_v<T, bool>) {
    return bits != 0;
  } else {
    const auto lowest = static_cast<UnsignedOf<sizeof(T)>>(bits);
    T value;
    __builtin_memcpy(static_cast<void*>(&value), &lowest, sizeof(T));
    return value;
  }
}

// A result in a register that may be wider: a signed one keeps its sign.
template <typename Register, typename T>
void set(Register& bits, T value) {
  if constexpr (std::is_integral_v<T>)
    bits = static_cast<Register>(value);
  else
    bits = static_cast<Register>(bits_of(value));
}

// A constant in the text of an instruction for `T`.
template <typename T>
T constant(double value) {
  return T(value);
}

// ---- operands of an asm statement

// The expression of an input. `Value` is the type of the constraint: float for "f", an integer for "r".
template <typename Value, typename T>
UnsignedOf<sizeof(Value)> input(const T& expression) {
  if constexpr (std::is_array_v<T>) {
    return input<Value>(&expression[0]);
  } else if constexpr (std::is_pointer_v<T>) {
    static_assert(sizeof(Value) == 8, "a pointer needs the constraint \"l\" in asm");
    return reinterpret_cast<std::uint64_t>(expression);
  } else if constexpr (std::is_floating_point_v<Value>) {
    static_assert(std::is_same_v<T, Value>, "\"f\" in asm needs a float, and \"d\" a double");
    return bits_of(expression);
  } else {
    static_assert(std::is_integral_v<T> || std::is_enum_v<T>,
                  "\"h\", \"r\" and \"l\" in asm need integers of 16, 32 and 64 bits");
    static_assert(sizeof(T) <= sizeof(Value), "the operand of asm is larger than its constraint says");
    return static_cast<UnsignedOf<sizeof(Value)>>(expression);
  }
}

template <typename T, typename Register>
__forceinline__ void output(T& expression, Register bits) {
  static_assert(sizeof(T) == sizeof(Register), "the operand of asm does not have the size of its constraint");
  expression = get<T>(bits);
}

// ---- two or four registers as one

template <typename Register>
Register join_registers(std::initializer_list<std::uint64_t> parts) {
  const std::size_t size = 8 * sizeof(Register) / parts.size();
  Register joined = 0;
  int number = 0;
  for (std::uint64_t part : parts)
    joined |= (Register(part) & ((Register(1) << size) - 1)) << (size * std::size_t(number++));
  return joined;
}

template <typename T, typename... Registers>
void split_register(T bits, Registers&... parts) {
  constexpr std::size_t size = 8 * sizeof(T) / sizeof...(parts);
  ((parts = static_cast<Registers>(bits & ((T(1) << size) - 1)), bits = static_cast<T>(bits >> size)), ...);
}

}  // namespace emulator::ptx
EMULATOR_END
