// Order through barriers of clusters and grids.
#pragma once

#include "happens_before.h"

EMULATOR_BEGIN
namespace emulator {

// Whether a thread has arrived at a barrier that has completed since, and has not waited there.
bool is_behind(const Thread& thread);
// What the running thread knows when it launches a kernel: of its block what came before the last barrier, of
// its warp what came before their last common step, and all that it has done itself. Null: it is not
// followed.
std::shared_ptr<const KnownBlocks> known_to_thread();
// At a barrier of the block, threads that have not waited learn what those that have waited know.
void share_known(const Block& block);
// All threads of these blocks have arrived at the barrier of their cluster or grid.
void synchronise(const std::vector<Block*>& blocks, Scope scope);

}  // namespace emulator
EMULATOR_END
