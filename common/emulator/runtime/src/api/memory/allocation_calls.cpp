// cudaMalloc, cudaFree and related functions: at once, in a stream, or as a node of a graph.
#include "allocation_calls.h"

#include "../../memory/devices.h"
#include "../../report/call.h"
#include "memory_pools.h"

namespace emulator {
namespace {

std::size_t rounded_pitch(std::size_t width) { return (width + 511) / 512 * 512; }  // bytes

cudaError_t free_now(void* memory, const FreeFunction& function) {
  if (sticky_error()) return sticky_error();
  if (const cudaError_t error = check_no_capture()) return error;
  finish_all();
  if (sticky_error()) return sticky_error();
  if (!memory) return cudaSuccess;
  if (is_wrong_to_free(memory, function)) return fail(cudaErrorInvalidValue);
  retire(*find_allocation(memory), Call::under_way()->where);
  return cudaSuccess;
}

}  // namespace

cudaError_t allocate(void** memory, std::size_t bytes, Space space) {
  if (const cudaError_t error = check_no_capture()) return error;
  return allocate_on(current_device(), memory, bytes, space);
}

cudaError_t free_array_memory(void* memory) { return free_now(memory, kFreeArray); }

cudaError_t prepare_allocation(void** memory, std::size_t bytes, int device, Work& work) {
  if (!bytes) return fail(cudaErrorInvalidValue);
  if (const cudaError_t error = allocate_on(device, memory, bytes, Space::device)) return error;
  Allocation& made = *find_allocation(*memory);
  made.is_of_graph = true;
  made.is_allocated = false;
  const Call& call = *Call::under_way();
  work = {std::string(call.name) + " of " + made.name, call.where, nullptr, {{*memory, bytes, true}}};
  work.type = cudaGraphNodeTypeMemAlloc;
  work.run = [memory = *memory] { allocate_again(*find_allocation(memory)); };
  return cudaSuccess;
}

cudaError_t prepare_free(void* memory, Work& work) {
  if (is_wrong_to_free(memory, kFree)) return fail(cudaErrorInvalidValue);
  const Call& call = *Call::under_way();
  work = {call.name, call.where, [memory, where = call.where] {
            Allocation* allocation = find_allocation(memory);
            if (allocation && !allocation->freed) retire(*allocation, where);
          }};
  work.type = cudaGraphNodeTypeMemFree;
  work.matters = false;
  return cudaSuccess;
}

namespace {

cudaError_t allocate_from(cudaMemPool_t pool, void** memory, std::size_t bytes, cudaStream_t stream) {
  if (!is_stream(stream)) return fail(cudaErrorInvalidResourceHandle);
  if (!is_pool(pool)) return fail(cudaErrorInvalidValue);
  if (is_captured(stream)) {
    Work work;
    const cudaError_t error = prepare_allocation(memory, bytes, device_of(pool), work);
    return error ? error : enqueue(stream, std::move(work));
  }
  if (!has_room(pool, bytes)) return fail(cudaErrorMemoryAllocation);
  const cudaError_t error = allocate_on(device_of(pool), memory, bytes, Space::device);
  if (!error && bytes) take_from_pool(pool, *memory, bytes);
  return error;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaMalloc(void** memory, std::size_t bytes, Position where) {
  const Call call("cudaMalloc", where);
  return allocate(memory, bytes, Space::device);
}
cudaError_t cudaMallocFromPoolAsync(void** memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                                    Position where) {
  const Call call("cudaMallocFromPoolAsync", where);
  return allocate_from(pool, memory, bytes, stream);
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaMemPool_t pool, cudaStream_t stream,
                            Position where) {
  const Call call("cudaMallocAsync", where);
  return allocate_from(pool, memory, bytes, stream);
}
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream, Position where) {
  const Call call("cudaMallocAsync", where);
  return allocate_from(current_pool(current_device()), memory, bytes, stream);
}
cudaError_t cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width, std::size_t height,
                            Position where) {
  const Call call("cudaMallocPitch", where);
  if (!pitch) return fail(cudaErrorInvalidValue);
  *pitch = rounded_pitch(width);
  return allocate(memory, *pitch * height, Space::device);
}
cudaError_t cudaMalloc3D(cudaPitchedPtr* memory, cudaExtent extent, Position where) {
  const Call call("cudaMalloc3D", where);
  if (!memory) return fail(cudaErrorInvalidValue);
  *memory = {nullptr, rounded_pitch(extent.width), extent.width, extent.height};
  return allocate(&memory->ptr, memory->pitch * extent.height * extent.depth, Space::device);
}
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned int flags, Position where) {
  const Call call("cudaMallocManaged", where);
  if (bytes == 0 || (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost))
    return fail(cudaErrorInvalidValue);
  return allocate(memory, bytes, Space::managed);
}
cudaError_t cudaFree(void* memory, Position where) {
  const Call call("cudaFree", where);
  return free_now(memory, kFree);
}
cudaError_t cudaFreeHost(void* memory, Position where) {
  const Call call("cudaFreeHost", where);
  return free_now(memory, kFreeHost);
}
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream, Position where) {
  const Call call("cudaFreeAsync", where);
  if (sticky_error()) return sticky_error();
  if (!memory) return cudaSuccess;
  Work work;
  const cudaError_t error = prepare_free(memory, work);
  return error ? error : enqueue(stream, std::move(work));
}
