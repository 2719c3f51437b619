// What cudaMalloc, cudaFree and related functions do, for the rest of the API.
#pragma once

#include "../streams/streams.h"
#include "allocations.h"

EMULATOR_BEGIN
namespace emulator {

// For the current call, as `allocate_on` for the current device, unless a stream is captured.
cudaError_t allocate(void** memory, std::size_t bytes, Space space);
cudaError_t free_array_memory(void* memory);  // for the current call
// For graphs, which allocate and free memory when a node runs. The memory is reserved now.
cudaError_t prepare_allocation(void** memory, std::size_t bytes, int device, Work& work);
cudaError_t prepare_free(void* memory, Work& work);

}  // namespace emulator
EMULATOR_END
