// Atomics. Threads take turns only where they wait, so a plain read and write between two turns is one step.
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

// Its own load and store are not looked at, but it as a whole.
template <bool is_exchange = false, typename T, typename Update>
__attribute__((no_sanitize("thread"), noinline)) T atomic(T* address, Update update) {
  count_poll();
  check_atomic(address, sizeof(T), is_exchange, __builtin_return_address(0));
  const T old = *address;
  *address = update(old);
  return old;
}

template <typename T>
__attribute__((no_sanitize("thread"), noinline)) T atomic_load(const T* address) {
  count_poll();
  check_atomic_load(address, sizeof(T), __builtin_return_address(0));
  return *address;
}
template <typename T>
__attribute__((no_sanitize("thread"), noinline)) void atomic_store(T* address, T value) {
  check_atomic_store(address, sizeof(T), __builtin_return_address(0));
  *address = value;
}

template <typename T>
T wrapping_add(T a, T b) {
  if constexpr (std::is_integral_v<T>)
    return T(std::make_unsigned_t<T>(a) + std::make_unsigned_t<T>(b));
  else
    return a + b;
}

}  // namespace emulator

#define EMULATOR_ATOMIC(name, T, expression)                                                   \
  inline T name(T* address, T value) {                                                         \
    return emulator::atomic(address, [=]([[maybe_unused]] T old) -> T { return expression; }); \
  }                                                                                            \
  inline T name##_block(T* address, T value) { return name(address, value); }                  \
  inline T name##_system(T* address, T value) { return name(address, value); }

#define EMULATOR_ATOMIC_EXCHANGE(T)                                                     \
  inline T atomicExch(T* address, T value) {                                            \
    return emulator::atomic<true>(address, [=](T) { return value; });                   \
  }                                                                                     \
  inline T atomicExch_block(T* address, T value) { return atomicExch(address, value); } \
  inline T atomicExch_system(T* address, T value) { return atomicExch(address, value); }

#define EMULATOR_ATOMIC_CAS(T)                                                                            \
  inline T atomicCAS(T* address, T compare, T value) {                                                    \
    return emulator::atomic(address, [=](T old) -> T { return old == compare ? value : old; });           \
  }                                                                                                       \
  inline T atomicCAS_block(T* address, T compare, T value) { return atomicCAS(address, compare, value); } \
  inline T atomicCAS_system(T* address, T compare, T value) { return atomicCAS(address, compare, value); }

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
#undef EMULATOR_ATOMIC_CAS
#undef EMULATOR_ATOMIC_EXCHANGE
EMULATOR_END
