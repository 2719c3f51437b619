// Copies from global to shared memory that a thread starts, and waits for later: cp.async.
//
// The data arrive when the thread waits. Until then their place in shared memory is uninitialised, so that a read
// before is found. A copy counts as a read of its source when it starts, and as a write of its target both when it
// starts and when the thread waits: it may happen at any time in between.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void start_async_copy(void* to, const void* from, std::uint32_t size, std::uint32_t source_size);
void commit_async_copies();                          // those since the last call are a group
void wait_for_async_copies(std::uint32_t pending);  // until at most so many of the latest groups are under way

}  // namespace emulator
EMULATOR_END
