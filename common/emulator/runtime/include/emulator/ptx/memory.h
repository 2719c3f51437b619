// PTX's loads and stores. They are the kernel's own, and every check sees them.
#pragma once

#include "emulator/async.h"
#include "emulator/ptx/arithmetic.h"
#include "emulator/shared_address.h"

EMULATOR_BEGIN
namespace emulator::ptx {

enum class StateSpace { generic, global, shared };

// Weak ones are like those of C++. The others are part of the order between threads, like volatile ones.
enum class Order { weak, relaxed, ordered };

template <StateSpace space, typename Register>
std::byte* pointer(Register address, std::int64_t offset, EMULATOR_HERE) {
  if constexpr (space == StateSpace::shared)
    return static_cast<std::byte*>(shared_pointer(static_cast<std::uint32_t>(address), where)) + offset;
  static_assert(space == StateSpace::shared || sizeof(Register) == 8,
                "an address in global memory has 64 bits");
  return reinterpret_cast<std::byte*>(static_cast<std::uint64_t>(address)) + offset;
}

template <typename T, Order order>
__forceinline__ T load(const std::byte* address) {
  using Bits = UnsignedOf<sizeof(T)>;
  if constexpr (order == Order::weak) {
    return get<T>(*reinterpret_cast<const Bits*>(address));
  } else {
    const Bits bits = *reinterpret_cast<const volatile Bits*>(address);
    if (order == Order::ordered) fence();
    return get<T>(bits);
  }
}

template <typename T, Order order>
__forceinline__ void store(std::byte* address, T value) {
  using Bits = UnsignedOf<sizeof(T)>;
  if constexpr (order == Order::weak) {
    *reinterpret_cast<Bits*>(address) = bits_of(value);
  } else {
    if (order == Order::ordered) fence();
    *reinterpret_cast<volatile Bits*>(address) = bits_of(value);
  }
}

// A vector is one access, and its address a multiple of its size.
template <typename T, int count>
struct alignas(count * sizeof(T)) Vector {
  T x[count];
};

template <typename T, Order order, typename... Registers>
__forceinline__ void load_vector(const std::byte* address, Registers&... to) {
  using Whole = Vector<T, sizeof...(to)>;
  Whole loaded = *reinterpret_cast<const Whole*>(address);
  if constexpr (order == Order::ordered) fence();
  int i = 0;
  (set(to, loaded.x[i++]), ...);
}

template <typename T, Order order, typename... Values>
__forceinline__ void store_vector(std::byte* address, Values... values) {
  using Whole = Vector<T, sizeof...(values)>;
  const Whole stored = {{values...}};
  if constexpr (order == Order::ordered) fence();
  *reinterpret_cast<Whole*>(address) = stored;
}

// ---- atomics

template <typename T, Order order, typename Update>
__forceinline__ T update(std::byte* address, Update update) {
  if constexpr (order == Order::ordered) fence();
  const T old = atomic(reinterpret_cast<T*>(address), update);
  if constexpr (order == Order::ordered) fence();
  return old;
}
// clang-format off
#define EMULATOR_PTX_ATOMIC(name, expression)                                                              \
  template <typename T, Order order>                                                                       \
  __forceinline__ T atom_##name(std::byte* address, T b) {                                                 \
    return update<T, order>(address, [=]([[maybe_unused]] T old) -> T { return expression; });             \
  }
// clang-format on
EMULATOR_PTX_ATOMIC(add, add(old, b))
EMULATOR_PTX_ATOMIC(min, min(old, b))
EMULATOR_PTX_ATOMIC(max, max(old, b))
EMULATOR_PTX_ATOMIC(and, T(old& b))
EMULATOR_PTX_ATOMIC(or, T(old | b))
EMULATOR_PTX_ATOMIC(xor, T(old ^ b))
EMULATOR_PTX_ATOMIC(inc, old >= b ? 0 : old + 1)
EMULATOR_PTX_ATOMIC(dec, old == 0 || old > b ? b : old - 1)
#undef EMULATOR_PTX_ATOMIC

template <typename T, Order order>
__forceinline__ T atom_exch(std::byte* address, T b) {
  if constexpr (order == Order::ordered) fence();
  const T old = atomic<true>(reinterpret_cast<T*>(address), [=](T) { return b; });
  if constexpr (order == Order::ordered) fence();
  return old;
}
template <typename T, Order order>
__forceinline__ T atom_cas(std::byte* address, T compare, T b) {
  return update<T, order>(address, [=](T old) -> T { return old == compare ? b : old; });
}

// ---- copies that arrive later: cp.async

// Copies `size` bytes from global to shared memory, of which those after the first `source_size` become zero.
inline void cp_async(std::byte* to, const std::byte* from, std::uint32_t size, std::uint32_t source_size) {
  const auto is_aligned = [=](const std::byte* address) {
    return reinterpret_cast<std::uintptr_t>(address) % size == 0;
  };
  if (source_size > size) abandon("executes cp.async of %u bytes with a source of %u", size, source_size);
  if (!is_aligned(to) || !is_aligned(from))
    abandon("executes cp.async with an address that is not a multiple of %u bytes", size);
  begin_copy(to, from, size, size - source_size);
}
inline void cp_async_commit_group() { commit_copies(); }
inline void cp_async_wait_group(std::uint32_t pending) { wait_for_copies(pending); }
inline void cp_async_wait_all() {
  commit_copies();
  wait_for_copies(0);
}

}  // namespace emulator::ptx
EMULATOR_END
