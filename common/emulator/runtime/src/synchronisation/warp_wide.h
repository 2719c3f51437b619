// Operations of a whole warp: see include/emulator/warp_wide.h.
#pragma once

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

constexpr bool is_warp_wide(Operation operation) { return operation >= Operation::mma_sync; }

// All lanes of the warp that still can have arrived.
void complete_warp_wide(const Collective& collective, Thread* lanes);

}  // namespace emulator
EMULATOR_END
