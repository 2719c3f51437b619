// What g++ -fsanitize=thread calls for every load and store. Nothing links the sanitizer's own runtime: these
// functions take its place, and pass the accesses of a kernel to the checks.
#include "../report/report.h"
#include "../scheduler/cores.h"
#include "../state/events.h"
#include "../state/fiber.h"
#include "../state/launch_state.h"
#include "accesses.h"
#include "emulator/atomics.h"
#include "host_accesses.h"
#include "repeated_reads.h"

using emulator::AccessKind;

namespace {

// The fiber on whose stack the code of a kernel is running. Null for host code, on any OS thread, and for the
// runtime itself: their accesses are not checked.
inline const emulator::Fiber* fiber_of_kernel() {
  if (!emulator::running.in_kernel) return nullptr;
  const emulator::Fiber* fiber = emulator::Fiber::running();
  return fiber && fiber->holds(__builtin_frame_address(0)) ? fiber : nullptr;
}

// Not those of a thread to its own local variables either.
inline bool is_checked(const void* address) {
  const emulator::Fiber* fiber = fiber_of_kernel();
  return fiber && !fiber->holds(address);
}

inline void hook_on_host(void* address, std::size_t size, bool is_write, AccessKind kind,
                         const void* caller) {
  if (emulator::collect_until_exit && !emulator::is_launch_running &&
      (kind != AccessKind::plain || emulator::has_open_page))
    emulator::access_from_host(address, size, is_write, kind, static_cast<const char*>(caller) - 1);
}

inline void hook(void* address, std::size_t size, bool is_write, AccessKind kind, const void* caller,
                 bool is_copy = false) {
  if (!emulator::running.in_kernel) return hook_on_host(address, size, is_write, kind, caller);
  if (kind != AccessKind::plain && emulator::needs_turn && is_checked(address))
    emulator::take_turn_at(address);
  if ((!emulator::running.observes_accesses && kind != AccessKind::is_volatile) || !is_checked(address))
    return;
  if (emulator::has_concurrent_host && kind == AccessKind::plain)
    emulator::check_against_host(address, size, is_write, static_cast<const char*>(caller) - 1);
  emulator::on_access(address, size, is_write, kind, static_cast<const char*>(caller) - 1, is_copy);
}

// Apart, so that a read without checks saves no registers.
template <std::size_t size>
[[gnu::noinline]] void hook_checked_read(void* address, const void* caller) {
  if (fiber_of_kernel() && emulator::is_repeated_read<size>(address, static_cast<const char*>(caller) - 1))
    return;
  hook(address, size, false, AccessKind::plain, caller);
}

template <std::size_t size>
inline void hook_read(void* address, const void* caller) {
  if constexpr (size >= 4)
    if (emulator::may_skip_checks) return hook_checked_read<size>(address, caller);
  hook(address, size, false, AccessKind::plain, caller);
}

// g++ calls this for a structure, and for a number at an address that it knows to be misaligned.
void hook_range(void* address, std::size_t size, bool is_write, const void* caller) {
  const bool is_number = is_checked(address) && emulator::is_scalar_in_variable(address, size);
  hook(address, size, is_write, AccessKind::plain, caller, !is_number);
}

}  // namespace

void emulator::check_copy(void* to, const void* from, std::size_t bytes, const void* pc) {
  if (from && bytes) hook(const_cast<void*>(from), bytes, false, AccessKind::plain, pc, true);
  if (bytes) hook(to, bytes, true, AccessKind::plain, pc, true);
}

void emulator::check_atomic(void* address, std::size_t size, bool is_exchange, const void* pc) {
  hook(address, size, true, is_exchange ? AccessKind::exchange : AccessKind::atomic, pc);
}

void emulator::check_atomic_of_device(void* address, std::size_t size, const void* pc) {
  if (emulator::has_concurrent_host)
    emulator::check_against_host(address, size, true, static_cast<const char*>(pc) - 1);
}

void emulator::check_atomic_load(const void* address, std::size_t size, const void* pc) {
  hook(const_cast<void*>(address), size, false, AccessKind::atomic, pc);
}

// As a volatile store, it does not read: its thread learns nothing from earlier ones.
void emulator::check_atomic_store(void* address, std::size_t size, const void* pc) {
  hook(address, size, true, AccessKind::is_volatile, pc);
}

#define HERE __builtin_return_address(0)
#define HOOKS(size)                                                                                 \
  void __tsan_read##size(void* a) { hook_read<size>(a, HERE); }                                     \
  void __tsan_write##size(void* a) { hook(a, size, true, AccessKind::plain, HERE); }                \
  void __tsan_volatile_read##size(void* a) { hook(a, size, false, AccessKind::is_volatile, HERE); } \
  void __tsan_volatile_write##size(void* a) { hook(a, size, true, AccessKind::is_volatile, HERE); }

// The host's atomics.
#define HOST(is_write)                                                                        \
  hook_on_host(const_cast<void*>(static_cast<const volatile void*>(a)), sizeof(*a), is_write, \
               AccessKind::atomic, HERE)
#define ATOMIC_HOOKS(bits, T)                                                               \
  T __tsan_atomic##bits##_load(const volatile T* a, int) {                                  \
    HOST(false);                                                                            \
    return __atomic_load_n(a, __ATOMIC_SEQ_CST);                                            \
  }                                                                                         \
  void __tsan_atomic##bits##_store(volatile T* a, T v, int) {                               \
    HOST(true);                                                                             \
    __atomic_store_n(a, v, __ATOMIC_SEQ_CST);                                               \
  }                                                                                         \
  T __tsan_atomic##bits##_exchange(volatile T* a, T v, int) {                               \
    HOST(true);                                                                             \
    return __atomic_exchange_n(a, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_add(volatile T* a, T v, int) {                              \
    HOST(true);                                                                             \
    return __atomic_fetch_add(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_sub(volatile T* a, T v, int) {                              \
    HOST(true);                                                                             \
    return __atomic_fetch_sub(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_and(volatile T* a, T v, int) {                              \
    HOST(true);                                                                             \
    return __atomic_fetch_and(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_or(volatile T* a, T v, int) {                               \
    HOST(true);                                                                             \
    return __atomic_fetch_or(a, v, __ATOMIC_SEQ_CST);                                       \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_xor(volatile T* a, T v, int) {                              \
    HOST(true);                                                                             \
    return __atomic_fetch_xor(a, v, __ATOMIC_SEQ_CST);                                      \
  }                                                                                         \
  T __tsan_atomic##bits##_fetch_nand(volatile T* a, T v, int) {                             \
    HOST(true);                                                                             \
    return __atomic_fetch_nand(a, v, __ATOMIC_SEQ_CST);                                     \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_strong(volatile T* a, T* c, T v, int, int) {   \
    HOST(true);                                                                             \
    return __atomic_compare_exchange_n(a, c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST); \
  }                                                                                         \
  int __tsan_atomic##bits##_compare_exchange_weak(volatile T* a, T* c, T v, int, int) {     \
    HOST(true);                                                                             \
    return __atomic_compare_exchange_n(a, c, v, true, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);  \
  }                                                                                         \
  T __tsan_atomic##bits##_compare_exchange_val(volatile T* a, T c, T v, int, int) {         \
    HOST(true);                                                                             \
    __atomic_compare_exchange_n(a, &c, v, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST);       \
    return c;                                                                               \
  }

#pragma GCC visibility push(hidden)
extern "C" {
HOOKS(1)
HOOKS(2)
HOOKS(4)
HOOKS(8)
HOOKS(16)
void __tsan_read_range(void* a, std::size_t size) { hook_range(a, size, false, HERE); }
void __tsan_write_range(void* a, std::size_t size) { hook_range(a, size, true, HERE); }

ATOMIC_HOOKS(8, std::uint8_t)
ATOMIC_HOOKS(16, std::uint16_t)
ATOMIC_HOOKS(32, std::uint32_t)
ATOMIC_HOOKS(64, std::uint64_t)
void __tsan_atomic_thread_fence(int) { __atomic_thread_fence(__ATOMIC_SEQ_CST); }
void __tsan_atomic_signal_fence(int) {}

// g++ -fsanitize=bounds calls this for an index that is not in an array.
struct UbsanType {
  std::uint16_t kind, info;  // of an integer: whether it is signed, and twice the logarithm of its bits
  char name[1];
};
struct UbsanOutOfBounds {
  const char* file;
  std::uint32_t line, column;
  const UbsanType *array, *index;
};
void __ubsan_handle_out_of_bounds(const UbsanOutOfBounds* what, std::uintptr_t value) {
  if (!fiber_of_kernel() || !emulator::running.observes_accesses) return;
  const int unused = 64 - std::min(64, 1 << (what->index->info >> 1));
  const auto index = what->index->info & 1 ? std::int64_t(value << unused) >> unused : std::int64_t(value);
  const char* pc = static_cast<const char*>(HERE) - 1;
  emulator::on_array_index({what->file, what->array->name, what->line, what->column, index}, pc);
}

void __tsan_init() {}
void __tsan_func_entry(void*) {}
void __tsan_func_exit() {}
void __tsan_vptr_update(void** a, void*) { hook(a, sizeof(void*), true, AccessKind::plain, HERE); }
void __tsan_vptr_read(void** a) { hook(a, sizeof(void*), false, AccessKind::plain, HERE); }
}
#pragma GCC visibility pop
