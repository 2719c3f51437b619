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

}  // namespace emulator
EMULATOR_END
