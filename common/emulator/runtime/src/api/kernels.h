// Kernels as arguments of CUDA's functions: launches by address, attributes, and how many blocks a device
// runs.
#pragma once

#include "emulator/kernel_api.h"

EMULATOR_BEGIN
namespace emulator {

void forget_function_attributes();  // as cudaDeviceReset does

}  // namespace emulator
EMULATOR_END
