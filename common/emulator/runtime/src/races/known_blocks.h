// Order through barriers of clusters and grids.
#pragma once

#include "happens_before.h"

EMULATOR_BEGIN
namespace emulator {

// Whether a thread has arrived at a barrier that has completed since, and has not waited there.
bool is_behind(const Thread& thread);
// At a barrier of the block, threads that have not waited learn what those that have waited know.
void share_known(const Block& block);

}  // namespace emulator
EMULATOR_END
