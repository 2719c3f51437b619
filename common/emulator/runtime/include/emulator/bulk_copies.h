// Bulk copies (cp.async.bulk): one thread copies an array, and a barrier counts the bytes that arrive, or the thread
// waits for a group of its copies.
#pragma once

#include "emulator/async.h"
#include "emulator/source_location.h"

EMULATOR_BEGIN
namespace emulator {

inline void check_bulk_copy(const void* to, const void* from, std::uint32_t bytes) {
  const auto is_multiple = [](auto number) { return std::uintptr_t(number) % 16 == 0; };
  if (!is_multiple(bytes))
    abandon("executes cp.async.bulk of %u bytes, which is not a multiple of 16", bytes);
  if (!is_multiple(to) || !is_multiple(from))
    abandon("executes cp.async.bulk with an address that is not a multiple of 16 bytes");
}

// To shared memory of the block or its cluster.
__attribute__((always_inline)) inline void begin_bulk_copy(void* to, const void* from, std::uint32_t bytes,
                                                           AsyncBarrier* barrier, Position where) {
  check_bulk_copy(to, from, bytes);
  begin_copy(to, from, bytes, 0, barrier);
  expect_bytes(barrier, -std::int64_t(bytes), where);
}

// From shared memory to global memory.
__attribute__((always_inline)) inline void begin_bulk_copy(void* to, const void* from, std::uint32_t bytes) {
  check_bulk_copy(to, from, bytes);
  begin_copy(to, from, bytes);
}

}  // namespace emulator
EMULATOR_END
