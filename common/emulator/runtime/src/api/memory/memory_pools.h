// Memory pools: which one memory comes from, and how much of it is in use.
#pragma once

#include <cstddef>

#include "emulator/memory_api.h"

EMULATOR_BEGIN
namespace emulator {

bool is_pool(cudaMemPool_t pool);
int device_of(cudaMemPool_t pool);
cudaMemPool_t current_pool(int device);  // of cudaMallocAsync
bool has_room(cudaMemPool_t pool, std::size_t bytes);
void take_from_pool(cudaMemPool_t pool, const void* memory, std::size_t bytes);
void return_to_pool(const void* memory);  // does nothing if the memory does not come from a pool

}  // namespace emulator
EMULATOR_END
