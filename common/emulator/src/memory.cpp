// Finds the memory behind an address, and says what is wrong with touching it.
#include "memory.h"

#include <algorithm>
#include <cstdio>
#include <map>

#include "access.h"
#include "builtin.h"
#include "launch_state.h"
#include "pages.h"
#include "report.h"

namespace emulator {
namespace {

// Bytes: further from an argument than this is no overrun of it. What is nearby may be what we know nothing
// of.
constexpr std::ptrdiff_t kNear = 64 << 20, kNearBesideUnknown = 256;

std::map<const std::byte*, Allocation>& table() {
  static auto& all = *new std::map<const std::byte*, Allocation>;
  return all;
}

// The last allocation that an instruction touched is most likely the next, too.
struct Last {
  const void* counter;
  Allocation* allocation;
} last_found[64];

void forget_last_found() { std::fill(std::begin(last_found), std::end(last_found), Last{}); }

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

// Whether the bytes belong to what the launch was given of an allocation.
bool is_given(const Allocation& allocation, const std::byte* address, std::size_t size) {
  if (address + size > allocation.end()) return false;
  if (allocation.used.empty() || state->has_structures) return true;
  return std::any_of(allocation.used.begin(), allocation.used.end(),
                     [&](const View& view) { return contains(view, address, size); });
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

// Whether all that the launch was given of it are pointers to const. What a structure holds is not known.
bool is_given_to_read(const Allocation& allocation) {
  if (!allocation.used.empty())
    return std::all_of(allocation.used.begin(), allocation.used.end(),
                       [](const View& view) { return view.read_only; });
  bool is_given = false;
  for (const Bound& one : bound()) {
    if (one.allocation != &allocation) continue;
    if (!one.argument.read_only) return false;
    is_given = true;
  }
  return is_given && !state->has_structures;
}

// The argument whose memory an address was meant for: it begins at or before the address, and nearest. A
// small step in front of the first argument is one, too.
const Bound* meant(const std::byte* address) {
  const Bound* best = nullptr;
  std::ptrdiff_t least = state->has_unknown ? kNearBesideUnknown : kNear;
  for (const Bound& one : bound()) {
    const std::byte* begin = bytes(one.argument.pointer);
    if (!begin) continue;
    const std::byte* end = one.allocation ? one.allocation->end() : begin;
    std::ptrdiff_t distance = address >= end ? address - end : address < begin ? begin - address : 0;
    if (address < begin) distance += 64;  // an overrun is likelier
    if (distance < least) best = &one, least = distance;
  }
  return best;
}

[[noreturn]] void refuse(const Access& access, const char* problem, const void* about, std::string what,
                         std::string detail) {
  const Cause cause{Check::memory, problem, access.counter, about};
  if (is_new(cause)) add(cause, {false, std::move(what), "", std::move(detail)});
  end_thread();
}

// What tells causes about one piece of memory from those about another. Each thread has a heap block of its
// own.
const void* identity(const Allocation& allocation) {
  return allocation.space == Space::heap ? static_cast<const void*>(allocation.where.file_name())
                                         : &allocation;
}

std::string verb(const Access& access) {
  if (is_atomic(access.kind)) return "updates";
  return access.is_write ? "writes" : "reads";
}

std::string address_text(const std::byte* address) {
  char text[32];
  std::snprintf(text, sizeof(text), "0x%llx",
                static_cast<unsigned long long>(reinterpret_cast<std::uintptr_t>(address)));
  return text;
}

// The only argument with elements of a size; null when there are none or several.
const Bound* only_argument(std::size_t size) {
  const Bound* found = nullptr;
  for (const Bound& one : bound()) {
    if (!one.allocation || one.argument.element != size) continue;
    if (found) return nullptr;
    found = &one;
  }
  return found;
}

[[noreturn]] void refuse_unknown(const Access& access) {
  if (is_null(access.address)) {
    const std::string which = null_arguments();
    refuse(access, "null", nullptr, verb(access) + " through a null pointer",
           which.empty()
               ? "address " + address_text(access.address)
               : which + " was null at the launch: never allocated, or left out and not asked about?");
  }
  std::string detail =
      "address " + address_text(access.address) + ", far from everything that the kernel was given";
  if (const Bound* only = only_argument(access.size))
    detail += "; if " + only->argument.name +
              " was meant: " + element_of(*only->allocation, access.address, access.size) + " of " +
              describe(*only->allocation);
  refuse(access, "nobody's memory", nullptr,
         verb(access) + " memory that is no tensor's, array's or allocation's", std::move(detail));
}

[[noreturn]] void refuse_outside(const Access& access, Allocation& allocation) {
  const bool in_front = access.address < allocation.begin;
  const bool within = !in_front && access.address < allocation.end();
  const char* problem = in_front ? "before the beginning" : within ? "outside" : "past the end";
  const std::string name = name_of(allocation);
  std::string what = verb(access) +
                     (within     ? " outside of "
                      : in_front ? " in front of "
                                 : " past the end of ") +
                     name;
  std::string element = element_of(allocation, access.address, access.size);
  std::string detail = (element.empty() ? "" : element + " of ") + describe(allocation);
  if (within) detail += "; the address lies in the storage that it is a part of";
  refuse(access, problem, identity(allocation), std::move(what), std::move(detail));
}

// Memory of this kind that ends shortly before the address, or begins shortly behind it.
Allocation* beside(const std::byte* address, Space space, std::ptrdiff_t most) {
  auto next = table().upper_bound(address);
  if (next != table().begin()) {
    Allocation& before = std::prev(next)->second;
    if (before.space == space && address - before.end() < most) return &before;
  }
  const bool is_beside =
      next != table().end() && next->second.space == space && next->second.begin - address < most;
  return is_beside ? &next->second : nullptr;
}

}  // namespace

std::vector<Bound>& bound() {
  static auto& all = *new std::vector<Bound>;
  return all;
}

Allocation& new_allocation(const void* begin, std::size_t size, Space space, std::string name,
                           Position where) {
  auto& all = table();
  const std::byte *first = bytes(begin), *end = first + size;
  auto next = all.lower_bound(first);
  if (next != all.begin() && std::prev(next)->second.end() > first) --next;
  while (next != all.end() && (next->first < end || next->first == first)) next = all.erase(next);
  forget_last_found();
  Allocation& made = all[first];
  made.begin = const_cast<std::byte*>(first);
  made.size = size;
  made.space = space;
  made.name = std::move(name);
  made.where = where;
  return made;
}

void forget(Allocation& allocation) {
  forget_last_found();
  table().erase(allocation.begin);
}

Allocation* find_allocation(const void* address) {
  auto& all = table();
  auto next = all.upper_bound(bytes(address));
  if (next == all.begin()) return nullptr;
  Allocation& before = std::prev(next)->second;
  return bytes(address) < before.end() ? &before : nullptr;
}

std::vector<Allocation*> all_allocations() {
  std::vector<Allocation*> all;
  for (auto& [begin, allocation] : table()) all.push_back(&allocation);
  return all;
}

// Tensors that are gone, and that no argument points to: others use their memory now.
static void forget_dead_tensors() {
  for (Allocation* allocation : all_allocations()) {
    const bool is_bound = std::any_of(bound().begin(), bound().end(),
                                      [&](const Bound& one) { return one.allocation == allocation; });
    if (!is_bound && allocation->alive && !allocation->alive()) forget(*allocation);
  }
}

// What a structure holds may be a pointer, or numbers that look like one.
static void bind_word(const void* word) {
  Allocation* allocation = find_allocation(word);
  const bool is_known = allocation && (!allocation->alive || allocation->alive());
  if (is_known) {
    Argument pointer;
    pointer.is_pointer = true;
    pointer.pointer = word;
    bound().push_back({pointer, allocation});
  }
  const bool is_unknown = !is_known && !is_own_data(word) && is_mapped(word);
  state->has_structures |= is_known || is_unknown;
  state->has_unknown |= is_unknown;
}

void bind(const std::vector<Argument>& arguments) {
  forget_last_found();
  for (const Argument& argument : arguments) {
    for (const void* word : argument.words) bind_word(word);
    if (!argument.is_pointer) continue;
    Allocation* allocation = find_allocation(argument.pointer);
    bound().push_back({argument, allocation});
    if (!allocation) continue;
    allocation->freed |= allocation->alive && !allocation->alive();
    const auto same = std::count_if(arguments.begin(), arguments.end(),
                                    [&](const Argument& other) { return other.pointer == argument.pointer; });
    std::vector<View> views = views_of(*allocation, argument, std::size_t(same));
    if (!argument.sizes.empty()) {  // an accessor says itself what it is
      views.resize(1);
      views[0].begin = bytes(argument.pointer);
      views[0].element = argument.element;
      views[0].sizes = argument.sizes;
      views[0].strides = argument.strides;
    }
    for (View& view : views) {  // none: all of the allocation is given
      view.name = argument.name;
      view.read_only |= argument.read_only;
      measure(view);  // an accessor's may be another
      allocation->used.push_back(std::move(view));
    }
  }
  forget_dead_tensors();
}

void unbind() {
  for (Bound& one : bound())
    if (one.allocation) one.allocation->used.clear();
  bound().clear();
  release_tensors();
}

bool is_closure(const std::byte* address) {
  const auto* begin = static_cast<const std::byte*>(state->closure_begin);
  return address >= begin && address < begin + state->closure_size;
}

void check_alignment(const Access& access, const SharedVariable* variable) {
  if (reinterpret_cast<std::uintptr_t>(access.address) % access.size == 0) return;
  std::string detail =
      "a device stops at it: such a pointer must be a multiple of " + std::to_string(access.size) + " bytes";
  std::string of;
  if (const Allocation* allocation = access.allocation) {
    of = " of " + name_of(*allocation);
    detail = std::to_string(access.address - allocation->begin) + " bytes into " + describe(*allocation) +
             "; " + detail;
  }
  if (variable) {
    of = " of " + name_of(*variable);
    detail = std::to_string(access.address - access.arena - std::ptrdiff_t(variable->offset)) +
             " bytes into " + name_of(*variable) + ", a __shared__ variable; " + detail;
  }
  set_error(cudaErrorMisalignedAddress);
  refuse(access, "misaligned", access.allocation,
         verb(access) + " " + std::to_string(access.size) + " bytes" + of + " at a misaligned address",
         std::move(detail));
}

void check_memory(Access& access, bool is_copy) {
  if (is_closure(access.address)) return;
  auto& last = last_found[reinterpret_cast<std::uintptr_t>(access.counter) / 4 % std::size(last_found)];
  Allocation* allocation = last.counter == access.counter ? last.allocation : nullptr;
  if (!allocation || access.address < allocation->begin || access.address >= allocation->end()) {
    allocation = find_allocation(access.address);
    last = {access.counter, allocation};
  }
  access.allocation = allocation;
  if (!is_on(Check::memory)) return;
  if (!allocation) {
    if (is_builtin(access.address)) return;
    if (is_own_data(access.address)) {  // the compiler's constants, or a variable that nobody has named
      if (!is_own_variable(access.address) || is_in_variable(access.address)) return;
      if (Allocation* variable = beside(access.address, Space::variable, 256))
        refuse_outside(access, *variable);
      return;
    }
    if (Allocation* block = beside(access.address, Space::heap, 16)) refuse_outside(access, *block);
    const Bound* near = meant(access.address);
    if (near && near->allocation) refuse_outside(access, *near->allocation);
    // A pointer that the host of a stage got in a way which we do not see.
    if (!collect_until_exit && (near || (state->has_unknown && !is_null(access.address)))) return;
    if (!near) refuse_unknown(access);
    refuse(access, "host memory", near->argument.pointer,
           verb(access) + " memory of the host through " + near->argument.name,
           "a kernel can only follow pointers from cudaMalloc and its kin");
  }
  if (allocation->freed)
    refuse(access, "after free", identity(*allocation),
           verb(access) + " " + name_of(*allocation) + " after it was freed" +
               (allocation->freed_where.line() ? " in " + line_at(allocation->freed_where) : ""),
           describe(*allocation));
  if (!is_given(*allocation, access.address, access.size)) refuse_outside(access, *allocation);
  if (access.is_write && allocation->read_only)
    refuse(access, "read-only", allocation, "writes " + name_of(*allocation) + ", which is read-only",
           describe(*allocation));
  if (access.is_write && is_given_to_read(*allocation)) {
    const Cause cause{Check::memory, "read-only", access.counter, allocation};
    if (is_new(cause))
      add(cause, {false, "writes " + name_of(*allocation) + ", which the kernel was given to read only", "",
                  describe(*allocation)});
  }
  if (!is_copy) check_alignment(access);
}

}  // namespace emulator
