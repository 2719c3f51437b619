// Barriers that are objects in memory, as other parts of the runtime use them.
#pragma once

#include <cstdint>

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

std::uint32_t current_phase_of(const void* barrier);
// No thread can continue. False if this is not because of such a barrier.
bool add_deadlock_of_objects();

}  // namespace emulator
EMULATOR_END
