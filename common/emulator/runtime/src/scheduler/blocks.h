// Blocks, which are kept from launch to launch to reuse their memory.
#pragma once

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

void open_cluster(std::uint64_t number);  // in the order in which they start; its blocks run at the same time
void close_block(Block& block);           // all its threads have ended
void keep_blocks();                       // those of a launch that does not continue

}  // namespace emulator
EMULATOR_END
