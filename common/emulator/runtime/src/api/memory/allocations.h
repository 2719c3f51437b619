// Memory from cudaMalloc and related functions, for the rest of the runtime.
#pragma once

#include "../../memory/allocation.h"
#include "../streams/streams.h"
#include "emulator/memory_api.h"

EMULATOR_BEGIN
namespace emulator {

// For the current call: uninitialised memory, named by the call's first argument.
cudaError_t allocate(void** memory, std::size_t bytes, Space space);
// For graphs, which allocate and free memory when a node runs. The memory is reserved now.
cudaError_t prepare_allocation(void** memory, std::size_t bytes, int device, Work& work);
cudaError_t prepare_free(void* memory, Work& work);
cudaError_t free_array_memory(void* memory);  // for the current call
constexpr int kAllDevices = -1;
void report_leaks(int device);        // as findings
void forget_allocations(int device);  // as cudaDeviceReset frees them

}  // namespace emulator
EMULATOR_END
