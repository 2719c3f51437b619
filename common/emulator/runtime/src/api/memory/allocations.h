// Memory that cudaMalloc and related functions return: where it comes from, and what is wrong with freeing
// it. Nothing here knows of streams: the calls that use one are in allocation_calls.h.
#pragma once

#include "../../memory/allocation.h"
#include "emulator/memory_api.h"

EMULATOR_BEGIN
namespace emulator {

// A function that frees memory, and the functions whose memory it accepts.
struct FreeFunction {
  const char *name, *makers;
};
inline constexpr FreeFunction kFree{"cudaFree", "cudaMalloc or cudaMallocManaged"},
    kFreeHost{"cudaFreeHost", "cudaMallocHost or cudaHostAlloc"},
    kFreeArray{"cudaFreeArray", "cudaMallocArray or cudaMalloc3DArray"};

// For the current call: uninitialised memory, named by the call's first argument.
cudaError_t allocate_on(int device, void** memory, std::size_t bytes, Space space);
void allocate_again(Allocation& allocation);  // memory of a graph, each time that its node runs
// Reports what is wrong with freeing this memory in the current call; false if nothing is.
bool is_wrong_to_free(const void* memory, const FreeFunction& function);
void retire(Allocation& allocation, Position where);  // it is freed there

constexpr int kAllDevices = -1;
void report_leaks(int device);        // as findings
void forget_allocations(int device);  // as cudaDeviceReset frees them

}  // namespace emulator
EMULATOR_END
