// The launches of the tree that runs, by the numbers of their blocks: a launch by the host, and those by the
// threads of its kernels.
#pragma once

#include "launch_state.h"

EMULATOR_BEGIN
namespace emulator {

struct TracedLaunch {
  std::uint64_t first_block, parent;  // `parent`: the first block of the launch whose thread launched it
  const char* kernel;
  dim3 grid, block;
};
void clear_launch_tree();
void add_to_launch_tree(
    const TracedLaunch& launch);  // the next one: its blocks come after those of the others
const TracedLaunch& launch_of_block(std::uint64_t block);

}  // namespace emulator
EMULATOR_END
