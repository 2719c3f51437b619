// Barriers of a block and collectives of a warp, from the scheduler's side.
#pragma once

#include <vector>

#include "../launch/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

void drop_from_barriers(Thread& thread);  // it has ended: the threads that wait for it go on
// Each gets the lanes of its warp that are at the same call.
void release_activemask(const std::vector<Thread*>& threads);

}  // namespace emulator
EMULATOR_END
