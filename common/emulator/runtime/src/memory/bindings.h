// What the arguments of the running launch point to.
#pragma once

#include <vector>

#include "../state/launch_state.h"
#include "allocation.h"
#include "emulator/arguments.h"

EMULATOR_BEGIN
namespace emulator {

// An argument of the running launch, and the allocation that it points into, or null.
struct BoundArgument {
  Argument argument;
  Allocation* allocation;
};
std::vector<BoundArgument>& bound_arguments();
std::string null_arguments();  // "out", or "x or y"

// Called around a launch: records what its arguments point to, by the names of the kernel's parameters.
void bind(const std::vector<Argument>& arguments);
void unbind();
void forget_bindings();  // before another launch of the same tree

// The host's copy of the arguments, and what a launch captured.
inline bool is_closure(const std::byte* address) {
  const auto* begin = static_cast<const std::byte*>(running.launch->closure);
  return address >= begin && address < begin + running.launch->closure_size;
}
inline bool is_closure_in(const std::byte* begin, const std::byte* end) {
  const auto* closure = static_cast<const std::byte*>(running.launch->closure);
  return closure >= begin && closure < end;
}
// Whether the bytes belong to what the launch was given of an allocation.
bool is_in_given_view(const Allocation& allocation, const std::byte* address, std::size_t size);
inline bool is_given(const Allocation& allocation, const std::byte* address, std::size_t size) {
  if (address + size > allocation.end()) return false;
  return allocation.used.empty() || running.launch->structure_pointers.has_any ||
         is_in_given_view(allocation, address, size);
}
// Around an access to what the launch was given: the bytes without gaps that it was given there.
std::pair<const std::byte*, const std::byte*> given_around(const Allocation& allocation,
                                                           const std::byte* address, std::size_t size);
bool is_given_to_read(const Allocation& allocation);
// Whether its elements are known to be numbers or pointers of a size: structures may contain padding.
bool holds_scalars(const Allocation& allocation, std::size_t size);
// The argument whose memory an access was probably meant for.
const BoundArgument* nearest_argument(const std::byte* address, const void* pc);
const BoundArgument* only_argument_of(std::size_t size);

}  // namespace emulator
EMULATOR_END
