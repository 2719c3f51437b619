// Copies under way: see include/emulator/async_copy.h.
#pragma once

#include <cstddef>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void forget_async_copies();  // of the launch before

// Where the copy to an address of shared memory was started that has not arrived; null if there is none.
const void* start_of_async_copy(const std::byte* address);

}  // namespace emulator
EMULATOR_END
