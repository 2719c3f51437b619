// Operations of a whole warp on registers of all its lanes, such as mma.sync.
#pragma once

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

constexpr unsigned kWarpLanes = 32;

// The last lane that arrives calls `compute` with what each of the lanes has passed as `own`, on their
// stacks. Unless all 32 lanes arrive, it is not called, and the check of barriers reports the call.
using WarpComputation = void (*)(void* const (&lanes)[kWarpLanes]);
void compute_in_warp(Operation operation, void* own, WarpComputation compute, Position where);

}  // namespace emulator
EMULATOR_END
