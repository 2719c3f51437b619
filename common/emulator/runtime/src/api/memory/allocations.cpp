// Named, uninitialised memory. No address is used twice.
#include "allocations.h"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <map>

#include "../../memory/access.h"
#include "../../memory/devices.h"
#include "../../memory/pages.h"
#include "../../races/initialisation.h"
#include "../../report/call.h"
#include "../../state/settings.h"
#include "memory_pools.h"

namespace emulator {
namespace {

// Bytes in live allocations of a device.
std::size_t& device_bytes(int device) {
  static auto& all = *new std::map<int, std::size_t>;
  return all[device];
}

void fill_pattern(void* memory, std::size_t bytes) {
  const std::size_t words = (bytes + sizeof(kUninitialised) - 1) / sizeof(kUninitialised);
  std::fill_n(static_cast<std::uint32_t*>(memory), words, kUninitialised);
}

const char* maker(Space space) {
  return space == Space::managed  ? "cudaMallocManaged"
         : space == Space::pinned ? "cudaMallocHost"
         : space == Space::array  ? "cudaMallocArray"
                                  : "cudaMalloc";
}

const FreeFunction& free_function_of(Space space) {
  return space == Space::pinned ? kFreeHost : space == Space::array ? kFreeArray : kFree;
}

bool is_ours(const Allocation& allocation) {
  const Space space = allocation.space;
  const bool is_from_call =
      space == Space::device || space == Space::array || space == Space::managed || space == Space::pinned;
  return is_from_call && !allocation.is_static;
}

// Whether an allocation of a device was not freed.
bool is_left_on(int device, const Allocation& allocation) {
  if (device != kAllDevices && allocation.device != device) return false;
  return is_ours(allocation) && allocation.is_allocated && !allocation.freed && !allocation.is_registered;
}

}  // namespace

cudaError_t allocate_on(int device, void** memory, std::size_t bytes, Space space) {
  if (sticky_error()) return sticky_error();
  if (!memory) return fail(cudaErrorInvalidValue);
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  const Call& call = *Call::under_way();
  const bool on_device = space != Space::pinned;
  const std::size_t most = emulator::device().totalGlobalMem;
  const std::size_t left = most - std::min(most, device_bytes(device));
  std::byte* begin = on_device && bytes > left
                         ? nullptr
                         : take_pages(bytes, space == Space::device || space == Space::array);
  if (!begin) return fail(cudaErrorMemoryAllocation);
  if (on_device) device_bytes(device) += bytes;
  {
    const OnDevice open;
    fill_pattern(begin, bytes);
  }
  Allocation& made = new_allocation(begin, bytes, space, argument_text(call.name, call.where, 0), call.where);
  made.device = device;
  mark_uninitialised(made, begin, bytes);
  *memory = begin;
  return cudaSuccess;
}

void allocate_again(Allocation& allocation) {
  allocation.is_allocated = true;
  allocation.freed = false;
  fill_pattern(allocation.begin, allocation.size);
  mark_uninitialised(allocation, allocation.begin, allocation.size);
}

bool is_wrong_to_free(const void* memory, const FreeFunction& function) {
  const Call& call = *Call::under_way();
  const Allocation* allocation = find_allocation(memory);
  const std::string text = argument_text(call.name, call.where, 0), name = text.empty() ? "a pointer" : text;
  const std::string own = call.name;
  if (!allocation || allocation->is_static)
    add_call_finding(Check::memory, "wrong free", memory,
                     own + " of " + name + ", which was not allocated by CUDA",
                     std::string("it accepts only pointers that ") + function.makers + " returned");
  else if (allocation->freed)
    add_call_finding(Check::memory, "double free", allocation,
                     own + " of " + name + ", which was already freed in " + line_at(allocation->freed_where),
                     describe(*allocation));
  else if (&free_function_of(allocation->space) != &function)
    add_call_finding(Check::memory, "wrong free", allocation,
                     own + " of " + name + ", which is memory from " + maker(allocation->space) + ": use " +
                         free_function_of(allocation->space).name,
                     describe(*allocation));
  else if (memory != allocation->begin)
    add_call_finding(Check::memory, "wrong free", allocation,
                     own + " of a pointer into " + allocation->name + ", not to its beginning",
                     describe(*allocation));
  else
    return false;
  return true;
}

void retire(Allocation& allocation, Position where) {
  if (allocation.is_of_graph) {  // its address stays reserved for the next launch of the graph
    allocation.freed = true;
    allocation.freed_where = where;
    allocation.is_allocated = false;
    return;
  }
  return_to_pool(allocation.begin);
  if (allocation.space != Space::pinned) device_bytes(allocation.device) -= allocation.size;
  allocation.freed = true;
  allocation.freed_where = where;
  allocation.shadow.reset();
  lift_protection(&allocation);
  retire_pages(allocation.begin, allocation.size);
}

void report_leaks(int device) {
  const char* setting = setting_of("EMULATOR_LEAKS");
  const bool is_error = setting && std::string(setting) == "error";
  for (const Allocation* allocation : all_allocations()) {
    if (!is_left_on(device, *allocation)) continue;
    const Cause cause{Check::leaks, "leak", nullptr, allocation};
    const std::string name = allocation->name.empty() ? "memory" : allocation->name;
    if (is_on(Check::leaks) && is_new(cause))
      add(cause, {!is_error,
                  name + " is never freed (" + std::to_string(allocation->size) + " bytes from " +
                      maker(allocation->space) + ")" +
                      (is_error ? "" : "; a leak alone does not make the program fail"),
                  line_at(allocation->where), ""});
  }
}

void forget_allocations(int device) {
  for (Allocation* allocation : all_allocations())
    if (is_left_on(device, *allocation)) retire(*allocation, Call::under_way()->where);
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total) {
  if (sticky_error()) return sticky_error();
  *total = device().totalGlobalMem;
  *free = *total - std::min(*total, device_bytes(current_device()));
  return cudaSuccess;
}

cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer) {
  if (sticky_error()) return sticky_error();
  const Allocation* allocation = find_allocation(pointer);
  void* address = const_cast<void*>(pointer);
  if (!allocation || allocation->freed)
    *attributes = {cudaMemoryTypeUnregistered, cudaInvalidDeviceId, nullptr, address, {}};
  else if (allocation->space == Space::pinned)
    *attributes = {cudaMemoryTypeHost, allocation->device, address, address, {}};
  else if (allocation->space == Space::managed)
    *attributes = {cudaMemoryTypeManaged, allocation->device, address, address, {}};
  else
    *attributes = {cudaMemoryTypeDevice, allocation->device, address, nullptr, {}};
  return cudaSuccess;
}
