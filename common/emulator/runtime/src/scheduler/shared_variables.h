// The `__shared__` variables of blocks: their places, and what they contain before they are written.
#pragma once

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

void clear_shared(Block& block);  // before the block's first thread

}  // namespace emulator
EMULATOR_END
