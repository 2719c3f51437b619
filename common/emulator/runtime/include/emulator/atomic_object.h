// cuda::atomic and cuda::atomic_ref. A release publishes what its thread did before, to every thread that
// reads the value: it is a fence before the access. Each load counts as an acquisition.
#pragma once

#include <type_traits>

#include "emulator/atomics.h"

namespace cuda {
namespace std {

enum memory_order {
  memory_order_relaxed,
  memory_order_consume,
  memory_order_acquire,
  memory_order_release,
  memory_order_acq_rel,
  memory_order_seq_cst,
};

}  // namespace std

using std::memory_order;
using std::memory_order_acq_rel;
using std::memory_order_acquire;
using std::memory_order_consume;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;

enum thread_scope {
  thread_scope_system = 0,
  thread_scope_device = 1,
  thread_scope_block = 2,
  thread_scope_thread = 10,
};

}  // namespace cuda

EMULATOR_BEGIN
namespace emulator {

inline bool publishes(cuda::memory_order order) {
  return order == cuda::memory_order_release || order == cuda::memory_order_acq_rel ||
         order == cuda::memory_order_seq_cst;
}

// The operations of an object at an address.
template <typename T>
class AtomicAccess {
  static_assert(std::is_trivially_copyable_v<T> && sizeof(T) <= 8,
                "the emulator supports atomic objects of at most 8 bytes");
  using Order = cuda::memory_order;

 public:
  using value_type = T;
  static constexpr bool is_always_lock_free = true;
  bool is_lock_free() const { return true; }

  T load(Order = cuda::memory_order_seq_cst) const { return atomic_load(address()); }
  void store(T value, Order order = cuda::memory_order_seq_cst) const {
    if (publishes(order)) fence();
    atomic_store(address(), value);
  }
  T exchange(T value, Order order = cuda::memory_order_seq_cst) const {
    return update<true>(order, [=](T) { return value; });
  }
  bool compare_exchange_strong(T& expected, T value, Order order = cuda::memory_order_seq_cst) const {
    const T wanted = expected;
    const T old = update(order, [=](T now) { return is_same(now, wanted) ? value : now; });
    if (is_same(old, wanted)) return true;
    expected = old;
    return false;
  }
  bool compare_exchange_strong(T& expected, T value, Order success, Order) const {
    return compare_exchange_strong(expected, value, success);
  }
  bool compare_exchange_weak(T& expected, T value, Order order = cuda::memory_order_seq_cst) const {
    return compare_exchange_strong(expected, value, order);
  }
  bool compare_exchange_weak(T& expected, T value, Order success, Order) const {
    return compare_exchange_strong(expected, value, success);
  }

  T fetch_add(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return wrapping_add(old, value); });
  }
  T fetch_sub(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return wrapping_subtract(old, value); });
  }
  T fetch_and(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return T(old & value); });
  }
  T fetch_or(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return T(old | value); });
  }
  T fetch_xor(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return T(old ^ value); });
  }
  T fetch_min(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return value < old ? value : old; });
  }
  T fetch_max(T value, Order order = cuda::memory_order_seq_cst) const {
    return update(order, [=](T old) { return old < value ? value : old; });
  }

  operator T() const { return load(); }
  T operator=(T value) const { return store(value), value; }
  T operator++(int) const { return fetch_add(T(1)); }
  T operator--(int) const { return fetch_sub(T(1)); }
  T operator++() const { return wrapping_add(fetch_add(T(1)), T(1)); }
  T operator--() const { return wrapping_subtract(fetch_sub(T(1)), T(1)); }
  T operator+=(T value) const { return wrapping_add(fetch_add(value), value); }
  T operator-=(T value) const { return wrapping_subtract(fetch_sub(value), value); }
  T operator&=(T value) const { return T(fetch_and(value) & value); }
  T operator|=(T value) const { return T(fetch_or(value) | value); }
  T operator^=(T value) const { return T(fetch_xor(value) ^ value); }

  void wait(T old, Order order = cuda::memory_order_seq_cst) const {
    while (is_same(load(order), old)) yield_thread();
  }
  void notify_one() const {}
  void notify_all() const {}

 protected:
  explicit AtomicAccess(T* address) : address_(address) {}
  T* address() const { return address_; }

 private:
  template <bool is_exchange = false, typename Update>
  T update(Order order, Update made) const {
    if (publishes(order)) fence();
    return atomic<is_exchange>(address(), made);
  }
  static bool is_same(T a, T b) { return __builtin_memcmp(&a, &b, sizeof(T)) == 0; }
  static T wrapping_subtract(T a, T b) {
    if constexpr (std::is_integral_v<T>)
      return T(std::make_unsigned_t<T>(a) - std::make_unsigned_t<T>(b));
    else
      return a - b;
  }

  T* address_;
};

}  // namespace emulator

namespace cuda {

template <typename T, thread_scope scope = thread_scope_system>
class atomic_ref : public emulator::AtomicAccess<T> {
 public:
  explicit atomic_ref(T& object) : emulator::AtomicAccess<T>(&object) {}
  atomic_ref(const atomic_ref&) = default;
  using emulator::AtomicAccess<T>::operator=;
};

template <typename T, thread_scope scope = thread_scope_system>
class atomic {
  using Access = emulator::AtomicAccess<T>;
  struct Here : Access {
    explicit Here(const atomic* self) : Access(const_cast<T*>(&self->value_)) {}
    using Access::operator=;
  };

 public:
  using value_type = T;
  atomic() = default;
  constexpr atomic(T value) : value_(value) {}
  atomic(const atomic&) = delete;
  atomic& operator=(const atomic&) = delete;

#define EMULATOR_FORWARD(name)                          \
  template <typename... Arguments>                      \
  decltype(auto) name(Arguments&&... arguments) const { \
    return Here(this).name(arguments...);               \
  }
  EMULATOR_FORWARD(load)
  EMULATOR_FORWARD(store)
  EMULATOR_FORWARD(exchange)
  EMULATOR_FORWARD(compare_exchange_strong)
  EMULATOR_FORWARD(compare_exchange_weak)
  EMULATOR_FORWARD(fetch_add)
  EMULATOR_FORWARD(fetch_sub)
  EMULATOR_FORWARD(fetch_and)
  EMULATOR_FORWARD(fetch_or)
  EMULATOR_FORWARD(fetch_xor)
  EMULATOR_FORWARD(fetch_min)
  EMULATOR_FORWARD(fetch_max)
  EMULATOR_FORWARD(wait)
#undef EMULATOR_FORWARD
  void notify_one() {}
  void notify_all() {}
  bool is_lock_free() const { return true; }
  operator T() const { return load(); }
  T operator=(T value) { return store(value), value; }
  T operator++(int) { return Here(this)++; }
  T operator--(int) { return Here(this)--; }
  T operator++() { return ++Here(this); }
  T operator--() { return --Here(this); }
  T operator+=(T value) { return Here(this) += value; }
  T operator-=(T value) { return Here(this) -= value; }
  T operator&=(T value) { return Here(this) &= value; }
  T operator|=(T value) { return Here(this) |= value; }
  T operator^=(T value) { return Here(this) ^= value; }

 private:
  alignas(sizeof(T)) T value_;
};

inline void atomic_thread_fence(memory_order, thread_scope = thread_scope_system) { emulator::fence(); }

namespace std {

template <typename T>
using atomic = cuda::atomic<T, cuda::thread_scope_system>;
template <typename T>
using atomic_ref = cuda::atomic_ref<T, cuda::thread_scope_system>;
inline void atomic_thread_fence(memory_order) { emulator::fence(); }

}  // namespace std
}  // namespace cuda
EMULATOR_END
