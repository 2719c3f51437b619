#include "bindings.h"

#include <algorithm>

#include "../state/events.h"
#include "../state/launch_state.h"
#include "../state/module_image.h"
#include "pages.h"

namespace emulator {
namespace {

// Bytes: an address further from an argument than this does not count as an overrun of it. Nearby memory may
// be unknown to the runtime.
constexpr std::ptrdiff_t kNear = 64 << 20, kNearBesideUnknown = 256;

const std::byte* bytes(const void* address) { return static_cast<const std::byte*>(address); }

void measure(View& view) {
  std::int64_t last = 0, elements = 1;
  for (std::size_t i = 0; i < view.sizes.size(); i++) {
    elements *= view.sizes[i];
    last += (view.sizes[i] - 1) * view.strides[i];
  }
  view.span = elements == 0 ? 0 : (last + 1) * std::ptrdiff_t(view.element);
  view.has_holes = elements < last + 1;
}

bool contains(const View& view, const std::byte* address, std::size_t size) {
  const std::ptrdiff_t from = address - view.begin;
  if (from < 0 || from + std::ptrdiff_t(size) > view.span) return false;
  if (!view.has_holes) return true;
  std::vector<std::int64_t> index;
  return index_of(view, from / std::ptrdiff_t(view.element), index);
}

// The views that an argument can mean, the newest first. Of those around where it points: the ones that the
// host named for this launch, if they are enough for `arguments` of the same pointer; best, those that begin
// there. Otherwise the pointer is from before, and may mean any.
std::vector<View> views_of(const Allocation& allocation, const Argument& argument, std::size_t arguments) {
  const std::byte* pointer = bytes(argument.pointer);
  std::vector<View> found(allocation.views.rbegin(), allocation.views.rend());
  for (View& view : found) measure(view);
  auto keep = [&](std::size_t least, auto is_kept) {
    const bool are_enough = std::size_t(std::count_if(found.begin(), found.end(), is_kept)) >= least;
    if (are_enough) std::erase_if(found, [&](const View& view) { return !is_kept(view); });
    return are_enough;
  };
  keep(0, [&](const View& view) { return view.begin <= pointer && pointer < view.begin + view.span; });
  if (keep(arguments, [](const View& view) { return view.is_recent; }))
    keep(arguments, [&](const View& view) { return view.begin == pointer; });
  if (!argument.read_only) keep(1, [](const View& view) { return !view.read_only; });
  return found;
}

// An accessor has a shape of its own.
void use_accessor_shape(View& view, const Argument& accessor) {
  view.begin = bytes(accessor.pointer);
  view.element = accessor.element;
  view.sizes = accessor.sizes;
  view.strides = accessor.strides;
}

// Forgets deleted tensors that no argument points to, because other objects may use their memory now.
void forget_dead_tensors() {
  for (Allocation* allocation : all_allocations()) {
    const bool is_bound = std::any_of(bound_arguments().begin(), bound_arguments().end(),
                                      [&](const BoundArgument& one) { return one.allocation == allocation; });
    if (!is_bound && allocation->alive && !allocation->alive()) forget(*allocation);
  }
}

// A word in a structure may be a pointer, or numbers that look like one.
void bind_word(const void* word) {
  Allocation* allocation = find_allocation(word);
  const bool is_known = allocation && (!allocation->alive || allocation->alive());
  if (is_known) {
    Argument pointer;
    pointer.is_pointer = true;
    pointer.pointer = word;
    bound_arguments().push_back({pointer, allocation});
  }
  const bool is_unknown = !is_known && !is_own_data(word) && is_mapped(word);
  running.launch->structure_pointers.has_any |= is_known || is_unknown;
  running.launch->structure_pointers.has_unknown |= is_unknown;
}

// As many arguments as `same` have this pointer.
void bind_pointer(const Argument& argument, std::size_t same) {
  Allocation* allocation = find_allocation(argument.pointer);
  bound_arguments().push_back({argument, allocation});
  if (!allocation) return;
  allocation->freed |= allocation->alive && !allocation->alive();
  std::vector<View> views = views_of(*allocation, argument, same);
  if (!argument.sizes.empty()) {
    views.resize(1);
    use_accessor_shape(views[0], argument);
  }
  for (View& view : views) {  // empty: the launch received the whole allocation
    view.name = argument.name;
    view.read_only |= argument.read_only;
    measure(view);  // again: an accessor's shape may differ
    allocation->used.push_back(std::move(view));
  }
}

}  // namespace

std::vector<BoundArgument>& bound_arguments() {
  static auto& all = *new std::vector<BoundArgument>;
  return all;
}

void bind(const std::vector<Argument>& arguments) {
  forget_last_accesses();
  for (const Argument& argument : arguments) {
    for (const void* word : argument.words) bind_word(word);
    if (!argument.is_pointer) continue;
    const auto same = std::count_if(arguments.begin(), arguments.end(),
                                    [&](const Argument& other) { return other.pointer == argument.pointer; });
    bind_pointer(argument, std::size_t(same));
  }
  forget_dead_tensors();
}

void forget_bindings() {
  for (BoundArgument& one : bound_arguments())
    if (one.allocation) one.allocation->used.clear();
  bound_arguments().clear();
}

void unbind() {
  forget_bindings();
  release_tensors();
}

std::string null_arguments() {
  std::string text;
  for (const BoundArgument& one : bound_arguments())
    if (!one.argument.pointer) text += (text.empty() ? "" : " or ") + one.argument.name;
  return text;
}

bool is_in_given_view(const Allocation& allocation, const std::byte* address, std::size_t size) {
  return std::any_of(allocation.used.begin(), allocation.used.end(),
                     [&](const View& view) { return contains(view, address, size); });
}

std::pair<const std::byte*, const std::byte*> given_around(const Allocation& allocation,
                                                           const std::byte* address, std::size_t size) {
  if (allocation.used.empty() || running.launch->structure_pointers.has_any)
    return {allocation.begin, allocation.end()};
  for (const View& view : allocation.used)
    if (!view.has_holes && contains(view, address, size)) return {view.begin, view.begin + view.span};
  return {address, address};
}

// Whether the launch received only pointers to const for it. The contents of structures are unknown.
bool is_given_to_read(const Allocation& allocation) {
  if (!allocation.used.empty())
    return std::all_of(allocation.used.begin(), allocation.used.end(),
                       [](const View& view) { return view.read_only; });
  bool is_given = false;
  for (const BoundArgument& one : bound_arguments()) {
    if (one.allocation != &allocation) continue;
    if (!one.argument.read_only) return false;
    is_given = true;
  }
  return is_given && !running.launch->structure_pointers.has_any;
}

bool holds_scalars(const Allocation& allocation, std::size_t size) {
  if (allocation.space == Space::variable) return allocation.scalar == size;
  const auto& all = bound_arguments();
  const auto is_of_it = [&](const BoundArgument& one) { return one.allocation == &allocation; };
  return std::any_of(all.begin(), all.end(), is_of_it) &&
         std::all_of(all.begin(), all.end(), [&](const BoundArgument& one) {
           return !is_of_it(one) || (one.argument.is_scalar && one.argument.element == size);
         });
}

// The one that the instruction accessed before, in other threads. Otherwise it begins at or before the
// address, and nearest; a small step in front of the first argument is one, too.
const BoundArgument* nearest_argument(const std::byte* address, const void* pc) {
  const BoundArgument* best = nullptr;
  const Allocation* usual = last_allocation_of(pc);
  std::ptrdiff_t least = running.launch->structure_pointers.has_unknown ? kNearBesideUnknown : kNear;
  for (const BoundArgument& one : bound_arguments()) {
    const std::byte* begin = bytes(one.argument.pointer);
    if (!begin) continue;
    const std::byte* end = one.allocation ? one.allocation->end() : begin;
    std::ptrdiff_t distance = address >= end ? address - end : address < begin ? begin - address : 0;
    if (address < begin) distance += 64;  // an overrun past an end is more likely
    if (one.allocation && one.allocation == usual && distance < kNear) return &one;
    if (distance < least) best = &one, least = distance;
  }
  return best;
}

// The only argument with elements of a size; null when there are none or several.
const BoundArgument* only_argument_of(std::size_t size) {
  const BoundArgument* found = nullptr;
  for (const BoundArgument& one : bound_arguments()) {
    if (!one.allocation || one.argument.element != size) continue;
    if (found) return nullptr;
    found = &one;
  }
  return found;
}

}  // namespace emulator
