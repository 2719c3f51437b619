#pragma once

#include "emulator/types.h"

EMULATOR_BEGIN
namespace emulator {
void set_thread(uint3 thread, uint3 block);
void set_launch(dim3 grid, dim3 block);
bool is_builtin(const void* address);  // threadIdx, blockIdx, blockDim, gridDim or warpSize
}  // namespace emulator
EMULATOR_END
