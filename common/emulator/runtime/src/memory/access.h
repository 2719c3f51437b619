// One load or store of a kernel, in the form that the checks use.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "allocation.h"
#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

enum class AccessKind : std::uint8_t { plain, is_volatile, atomic, exchange };
constexpr int kAccessKinds = 4;
// The value that an exchange reads may be unused.
constexpr bool is_atomic(AccessKind kind) { return kind >= AccessKind::atomic; }

struct Access {
  std::byte* address;
  std::size_t size;  // bytes: 1, 2, 4, 8 or 16, or any number of a copy
  bool is_write;     // an atomic reads and writes
  AccessKind kind;
  const void* pc;          // of the instruction in the kernel
  Allocation* allocation;  // null for shared memory
  std::byte* arena;        // first byte of the part of shared memory; null for global memory
  Block* owner;            // the block whose shared memory it is
};

// Called by the hooks on the stack of the running thread, before the access happens. Not called for local
// variables. Does not return if the thread must not continue. A copy of a structure may begin anywhere.
void on_access(void* address, std::size_t size, bool is_write, AccessKind kind, const void* pc,
               bool is_copy = false);

// An asynchronous copy arrives: from now on its thread has written this memory.
void record_arrival(void* to, std::size_t bytes, const void* pc);

// The read and the write of a copy by the C library; `from` may be null.
void check_copy(void* to, const void* from, std::size_t bytes, const void* pc);

// Checks an access to global memory before it happens, and sets `allocation`. Does not return
// if the thread must not continue.
void check_memory(Access& access, bool is_copy);
// Whether every access to what the launch was given of an allocation passes, if one has.
bool may_access_all(const Allocation& allocation, bool is_write);
void check_alignment(const Access& access, const SharedVariable* variable = nullptr);
// Whether it would be an access to one number or pointer in a `__device__` or `__constant__` variable.
bool is_scalar_in_variable(const void* address, std::size_t size);

}  // namespace emulator
EMULATOR_END
