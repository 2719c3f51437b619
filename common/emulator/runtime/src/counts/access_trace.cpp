// Records which thread accesses which element: every access of a few threads of one block.
#include "../memory/shared_memory.h"
#include "../state/launch_state.h"
#include "counts.h"

namespace emulator {
namespace {

constexpr std::size_t kMostTraced = 200'000;  // accesses

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

TracedArray array_of(const Allocation& allocation, std::size_t size) {
  const View* view = !allocation.used.empty()    ? &allocation.used.front()
                     : !allocation.views.empty() ? &allocation.views.back()
                                                 : nullptr;
  if (!view || !view->element) return {name_of(allocation), number_of(allocation.begin), size, {}, {}};
  return {name_of(allocation), number_of(view->begin), view->element, view->sizes, view->strides};
}

unsigned traced_array(const Access& access) {
  Trace& trace = counts().trace;
  const SharedVariable* variable =
      access.arena ? variable_at(*access.owner, access.arena, access.address) : nullptr;
  const void* memory =
      variable ? static_cast<const void*>(access.arena + variable->offset) : access.allocation;
  const auto [known, is_new] = trace.known.insert({memory, unsigned(trace.arrays.size())});
  if (!is_new) return known->second;
  if (variable)
    trace.arrays.push_back({name_of(*variable), number_of(memory), access.size, {}, {}});
  else if (access.allocation)
    trace.arrays.push_back(array_of(*access.allocation, access.size));
  else
    trace.arrays.push_back({"unnamed memory", 0, access.size, {}, {}});
  return known->second;
}

}  // namespace

void trace_access(const Access& access, unsigned instruction, std::uint64_t request) {
  Trace& trace = counts().trace;
  const Thread& thread = *running.thread;
  if (trace.block < 0 || thread.block->number != std::uint64_t(trace.block)) return;
  if (thread.rank < trace.first || thread.rank > trace.last || trace.accesses.size() >= kMostTraced) return;
  const unsigned array = traced_array(access);
  const auto offset = std::int64_t(number_of(access.address) - trace.arrays[array].begin);
  trace.accesses.push_back({instruction, array, thread.rank, request, offset, access.size});
}

}  // namespace emulator
