// Pinned host memory: allocated by CUDA, or registered with it.
#include <map>

#include "../../memory/allocation.h"
#include "../../races/initialisation.h"
#include "../../report/call.h"
#include "allocation_calls.h"

namespace emulator {
namespace {

// The flags of pinned host memory, by its beginning.
std::map<const void*, unsigned int>& host_flags() {
  static auto& all = *new std::map<const void*, unsigned int>;  // outlives every static object
  return all;
}

cudaError_t allocate_pinned(void** memory, std::size_t bytes, unsigned int flags) {
  if (flags & ~unsigned(cudaHostAllocPortable | cudaHostAllocMapped | cudaHostAllocWriteCombined))
    return fail(cudaErrorInvalidValue);
  const cudaError_t error = allocate(memory, bytes, Space::pinned);
  if (!error && bytes) host_flags()[*memory] = flags | cudaHostAllocMapped;
  return error;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaMallocHost(void** memory, std::size_t bytes, Position where) {
  const Call call("cudaMallocHost", where);
  return allocate_pinned(memory, bytes, cudaHostAllocDefault);
}
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int flags, Position where) {
  const Call call("cudaHostAlloc", where);
  return allocate_pinned(memory, bytes, flags);
}
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags, Position where) {
  const Call call("cudaHostRegister", where);
  if (sticky_error()) return sticky_error();
  if (!memory || !bytes) return fail(cudaErrorInvalidValue);
  if (find_allocation(memory)) return fail(cudaErrorHostMemoryAlreadyRegistered);
  host_flags()[memory] = flags | cudaHostRegisterMapped;
  Allocation& made = new_allocation(memory, bytes, Space::pinned, argument_text(call.name, where, 0), where);
  made.is_registered = true;
  mark_initialised(made, memory, bytes);
  return cudaSuccess;
}
cudaError_t cudaHostUnregister(void* memory, Position where) {
  const Call call("cudaHostUnregister", where);
  if (sticky_error()) return sticky_error();
  const Allocation* allocation = find_allocation(memory);
  if (!allocation || !allocation->is_registered || memory != allocation->begin)
    return fail(cudaErrorHostMemoryNotRegistered);
  finish_all();
  host_flags().erase(memory);
  forget(*find_allocation(memory));
  return cudaSuccess;
}
cudaError_t cudaHostGetDevicePointer(void** on_device, void* memory, unsigned int, Position where) {
  const Call call("cudaHostGetDevicePointer", where);
  const Allocation* allocation = find_allocation(memory);
  if (!allocation || allocation->freed || allocation->space != Space::pinned)
    return fail(cudaErrorInvalidValue);
  return *on_device = memory, cudaSuccess;
}
cudaError_t cudaHostGetFlags(unsigned int* flags, void* memory, Position where) {
  const Call call("cudaHostGetFlags", where);
  const Allocation* allocation = find_allocation(memory);
  const auto known =
      allocation && !allocation->freed ? host_flags().find(allocation->begin) : host_flags().end();
  if (known == host_flags().end()) return fail(cudaErrorInvalidValue);
  return *flags = known->second, cudaSuccess;
}
