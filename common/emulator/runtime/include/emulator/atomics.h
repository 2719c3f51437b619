// Atomics. Of one core, threads take turns only where they wait; other cores may run other blocks meanwhile.
// CUDA has one function a type, not a template: an int literal must convert to the pointer's type.
#pragma once

#include <cstdint>
#include <cstring>
#include <type_traits>

#include "emulator/synchronise.h"

EMULATOR_BEGIN
namespace emulator {

void check_atomic(void* address, std::size_t size, bool is_exchange, const void* pc);
void check_atomic_load(const void* address, std::size_t size, const void* pc);
void check_atomic_store(void* address, std::size_t size, const void* pc);

// One that is atomic only on the device: the host must not access the element at the same time.
void check_atomic_of_device(void* address, std::size_t size, const void* pc);

// An unsigned number of as many bytes as a T has.
template <typename T>
using BitsOf =
    std::conditional_t<sizeof(T) == 1, std::uint8_t,
                       std::conditional_t<sizeof(T) == 2, std::uint16_t,
                                          std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>>>;

template <typename T>
T from_bits(BitsOf<T> bits) {
  T value;
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}
template <typename T>
BitsOf<T> to_bits(const T& value) {
  BitsOf<T> bits;
  std::memcpy(&bits, &value, sizeof(T));
  return bits;
}

// Its own load and store are not looked at, but it as a whole.
template <bool is_exchange = false, bool is_system = false, typename T, typename Update>
__attribute__((no_sanitize("thread"), noinline)) T atomic(T* address, Update update) {
  count_poll();
  if (!is_system) check_atomic_of_device(address, sizeof(T), __builtin_return_address(0));
  check_atomic(address, sizeof(T), is_exchange, __builtin_return_address(0));
  auto* memory = reinterpret_cast<BitsOf<T>*>(address);
  auto bits = __atomic_load_n(memory, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(memory, &bits, to_bits<T>(update(from_bits<T>(bits))), false,
                                      __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return from_bits<T>(bits);
}

template <typename T>
__attribute__((no_sanitize("thread"), noinline)) T atomic_load(const T* address) {
  count_poll();
  check_atomic_load(address, sizeof(T), __builtin_return_address(0));
  return from_bits<T>(__atomic_load_n(reinterpret_cast<const BitsOf<T>*>(address), __ATOMIC_ACQUIRE));
}
template <typename T>
__attribute__((no_sanitize("thread"), noinline)) void atomic_store(T* address, T value) {
  check_atomic_store(address, sizeof(T), __builtin_return_address(0));
  __atomic_store_n(reinterpret_cast<BitsOf<T>*>(address), to_bits(value), __ATOMIC_RELEASE);
}

template <typename T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return a + b;
}

}  // namespace emulator

#define EMULATOR_ATOMIC_OF_SCOPE(name, is_system, T, expression)                                        \
  inline T name(T* address, T value) {                                                                  \
    return emulator::atomic<false, is_system>(address,                                                  \
                                              [=]([[maybe_unused]] T old) -> T { return expression; }); \
  }
#define EMULATOR_ATOMIC(name, T, expression)                   \
  EMULATOR_ATOMIC_OF_SCOPE(name, false, T, expression)         \
  EMULATOR_ATOMIC_OF_SCOPE(name##_block, false, T, expression) \
  EMULATOR_ATOMIC_OF_SCOPE(name##_system, true, T, expression)

#define EMULATOR_ATOMIC_EXCHANGE_OF_SCOPE(name, is_system, T)                    \
  inline T name(T* address, T value) {                                           \
    return emulator::atomic<true, is_system>(address, [=](T) { return value; }); \
  }
#define EMULATOR_ATOMIC_EXCHANGE(T)                             \
  EMULATOR_ATOMIC_EXCHANGE_OF_SCOPE(atomicExch, false, T)       \
  EMULATOR_ATOMIC_EXCHANGE_OF_SCOPE(atomicExch_block, false, T) \
  EMULATOR_ATOMIC_EXCHANGE_OF_SCOPE(atomicExch_system, true, T)

#define EMULATOR_ATOMIC_CAS_OF_SCOPE(name, is_system, T)                                                 \
  inline T name(T* address, T compare, T value) {                                                        \
    return emulator::atomic<false, is_system>(address,                                                   \
                                              [=](T old) -> T { return old == compare ? value : old; }); \
  }
#define EMULATOR_ATOMIC_CAS(T)                            \
  EMULATOR_ATOMIC_CAS_OF_SCOPE(atomicCAS, false, T)       \
  EMULATOR_ATOMIC_CAS_OF_SCOPE(atomicCAS_block, false, T) \
  EMULATOR_ATOMIC_CAS_OF_SCOPE(atomicCAS_system, true, T)

#define EMULATOR_ATOMICS_OF_INTEGERS(T)                    \
  EMULATOR_ATOMIC_EXCHANGE(T)                              \
  EMULATOR_ATOMIC(atomicMin, T, value < old ? value : old) \
  EMULATOR_ATOMIC(atomicMax, T, value > old ? value : old) \
  EMULATOR_ATOMIC(atomicAnd, T, old& value)                \
  EMULATOR_ATOMIC(atomicOr, T, old | value)                \
  EMULATOR_ATOMIC(atomicXor, T, old ^ value)               \
  EMULATOR_ATOMIC_CAS(T)

EMULATOR_ATOMICS_OF_INTEGERS(int)
EMULATOR_ATOMICS_OF_INTEGERS(unsigned int)
EMULATOR_ATOMICS_OF_INTEGERS(unsigned long long)
EMULATOR_ATOMIC(atomicMin, long long, value < old ? value : old)
EMULATOR_ATOMIC(atomicMax, long long, value > old ? value : old)
EMULATOR_ATOMIC(atomicAnd, long long, old& value)
EMULATOR_ATOMIC(atomicOr, long long, old | value)
EMULATOR_ATOMIC(atomicXor, long long, old ^ value)
EMULATOR_ATOMIC_CAS(unsigned short)

EMULATOR_ATOMIC(atomicAdd, int, emulator::wrapping_add(old, value))
EMULATOR_ATOMIC(atomicAdd, unsigned int, old + value)
EMULATOR_ATOMIC(atomicAdd, unsigned long long, old + value)
EMULATOR_ATOMIC(atomicAdd, float, old + value)
EMULATOR_ATOMIC(atomicAdd, double, old + value)
EMULATOR_ATOMIC_EXCHANGE(float)
EMULATOR_ATOMIC(atomicSub, int, emulator::wrapping_add(old, int(0u - unsigned(value))))
EMULATOR_ATOMIC(atomicSub, unsigned int, old - value)
EMULATOR_ATOMIC(atomicInc, unsigned int, old >= value ? 0 : old + 1)
EMULATOR_ATOMIC(atomicDec, unsigned int, old == 0 || old > value ? value : old - 1)

#undef EMULATOR_ATOMICS_OF_INTEGERS
#undef EMULATOR_ATOMIC_CAS_OF_SCOPE
#undef EMULATOR_ATOMIC_EXCHANGE_OF_SCOPE
#undef EMULATOR_ATOMIC_CAS
#undef EMULATOR_ATOMIC_EXCHANGE
EMULATOR_END
