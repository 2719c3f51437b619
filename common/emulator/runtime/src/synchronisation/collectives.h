// Barriers of a block and collectives of a warp, as the scheduler uses them.
#pragma once

#include <vector>

#include "../launch/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

void drop_from_barriers(Thread& thread);  // it has ended: threads that wait for it continue
// Each thread gets the mask of the lanes of its warp that are at the same call. Lanes at an earlier call of
// the same function go first, because they may come to this one: the rest stay in `threads`.
void release_activemask(std::vector<Thread*>& threads);

}  // namespace emulator
EMULATOR_END
