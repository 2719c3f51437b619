// C library functions in kernels: copies, the heap of the device, and its clock.
#include "heap.h"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <string>

#include "../memory/allocation.h"
#include "../races/initialisation.h"
#include "../report/report.h"
#include "../scheduler/cores.h"
#include "../state/events.h"
#include "../state/launch_state.h"
#include "emulator/heap.h"
#include "emulator/synchronise.h"

namespace emulator {
namespace {

constexpr std::size_t kRoomBehind =
    64;  // bytes behind an allocation that belong to none, so that an overrun is found

std::size_t heap_size = kHeapSize, used_bytes = 0;

std::mutex heap_mutex;  // for blocks on several cores that have given their order up

void refuse_free(const char* problem, const Allocation* allocation, Position where) {
  const Cause cause{Check::memory, problem, nullptr, where.file_name(), where.line(), where.column()};
  if (!is_on(Check::memory) || !is_new(cause)) return;
  const std::string name = allocation ? name_of(*allocation) : "a pointer";
  add(cause, {false, "frees " + name + ", which " + problem, line_at(where),
              allocation ? describe(*allocation) : ""});
}

void warn_that_heap_is_full(std::size_t bytes, Position where) {
  const Cause cause{Check::memory, "full heap", nullptr, where.file_name(), where.line(), where.column()};
  if (!is_on(Check::memory) || !is_new(cause)) return;
  add(cause, {true, "the heap of kernels is full, and malloc or new returns a null pointer", line_at(where),
              "asked for " + std::to_string(bytes) + " bytes; " + std::to_string(used_bytes) + " of " +
                  std::to_string(heap_size) +
                  " are in use; cudaDeviceSetLimit(cudaLimitMallocHeapSize, ...) changes the size"});
}

}  // namespace

__attribute__((noinline)) void* memcpy(void* to, const void* from, std::size_t bytes) {
  check_copy(to, from, bytes, __builtin_return_address(0));
  return std::memcpy(to, from, bytes);
}
__attribute__((noinline)) void* memmove(void* to, const void* from, std::size_t bytes) {
  check_copy(to, from, bytes, __builtin_return_address(0));
  return std::memmove(to, from, bytes);
}
__attribute__((noinline)) void* memset(void* memory, int value, std::size_t bytes) {
  check_copy(memory, nullptr, bytes, __builtin_return_address(0));
  return std::memset(memory, value, bytes);
}

void set_heap_size(std::size_t bytes) { heap_size = bytes; }
void clear_heap() { used_bytes = 0; }

clock_t clock() { return running.in_kernel ? clock_t(clock64()) : std::clock(); }

// Memory that kernels free is not reused, so that a use after the free is found.
void* malloc(std::size_t bytes, Position where) {
  if (!running.in_kernel) return std::malloc(bytes);
  const InRuntime inside;
  take_turn();
  const std::lock_guard lock(heap_mutex);
  const bool is_full = bytes > heap_size - std::min(used_bytes, heap_size);
  void* memory = is_full ? nullptr : std::aligned_alloc(16, (bytes + kRoomBehind + 15) / 16 * 16);
  if (!memory) warn_that_heap_is_full(bytes, where);
  if (!memory || bytes == 0) return memory;
  used_bytes += bytes;
  Allocation& made = new_allocation(memory, bytes, Space::heap, "memory from malloc", where);
  for (std::size_t i = 0; i < bytes; i += sizeof(kUninitialised))
    std::memcpy(made.begin + i, &kUninitialised, std::min(sizeof(kUninitialised), bytes - i));
  mark_uninitialised(made, memory, bytes);
  return memory;
}

void free(void* memory, Position where) {
  if (!running.in_kernel) return std::free(memory);
  if (!memory) return;
  const InRuntime inside;
  take_turn();
  const std::lock_guard lock(heap_mutex);
  Allocation* allocation = find_allocation(memory);
  if (!allocation || allocation->space != Space::heap)
    return refuse_free("was not returned by malloc in a kernel", allocation, where);
  if (allocation->begin != memory)
    return refuse_free("is not the address that malloc returned", allocation, where);
  if (allocation->freed) return refuse_free("was already freed", allocation, where);
  allocation->freed = true;
  used_bytes -= std::min(used_bytes, allocation->size);
  forget_last_accesses();
  allocation->freed_where = where;
}

}  // namespace emulator

long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1'000'000'000LL * now.tv_sec + now.tv_nsec;
}
