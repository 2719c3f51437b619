// Which thread touches which element: every access of a few threads of one block.
#include "counts.h"
#include "launch_state.h"

namespace emulator {
namespace {

constexpr std::size_t kMostTraced = 200'000;  // accesses

const SharedVariable* variable_of(const Access& access) {
  const auto offset = std::size_t(access.address - access.arena);
  const bool is_dynamic = access.arena == current->block->arena.dynamic;
  for (const SharedVariable& one : state->variables)
    if (one.is_dynamic == is_dynamic && offset >= one.offset && offset < one.offset + one.size) return &one;
  return nullptr;
}

std::uintptr_t number_of(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }

TracedArray array_of(const Allocation& allocation, std::size_t size) {
  const View* view = !allocation.used.empty()    ? &allocation.used.front()
                     : !allocation.views.empty() ? &allocation.views.back()
                                                 : nullptr;
  if (!view || !view->element) return {name_of(allocation), number_of(allocation.begin), size, {}, {}};
  return {name_of(allocation), number_of(view->begin), view->element, view->sizes, view->strides};
}

unsigned array_touched(const Access& access) {
  Trace& trace = counts().trace;
  const SharedVariable* variable = access.arena ? variable_of(access) : nullptr;
  const void* memory =
      variable ? static_cast<const void*>(access.arena + variable->offset) : access.allocation;
  const auto [known, is_new] = trace.known.insert({memory, unsigned(trace.arrays.size())});
  if (!is_new) return known->second;
  if (variable)
    trace.arrays.push_back({name_of(*variable), number_of(memory), access.size, {}, {}});
  else if (access.allocation)
    trace.arrays.push_back(array_of(*access.allocation, access.size));
  else
    trace.arrays.push_back({"memory without a name", 0, access.size, {}, {}});
  return known->second;
}

}  // namespace

void trace_access(const Access& access, unsigned instruction, std::uint64_t request) {
  Trace& trace = counts().trace;
  const Thread& thread = *current;
  if (trace.block < 0 || thread.block->number != std::uint64_t(trace.block)) return;
  if (thread.rank < trace.first || thread.rank > trace.last || trace.touches.size() >= kMostTraced) return;
  const unsigned array = array_touched(access);
  const auto offset = std::int64_t(number_of(access.address) - trace.arrays[array].begin);
  trace.touches.push_back({instruction, array, thread.rank, request, offset, access.size});
}

}  // namespace emulator
