// What global memory there is, by name: tensors, allocations, variables of a file. (Shared memory:
// shared.cpp.)
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "emulator/arguments.h"
#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

class Shadow;
struct Access;

enum class Space : std::uint8_t {
  tensor,    // the storage of a tensor
  device,    // cudaMalloc
  managed,   // cudaMallocManaged
  pinned,    // cudaMallocHost, cudaHostAlloc
  variable,  // `__device__` or `__constant__` at file scope
  heap,      // malloc in a kernel
};

// A window into an allocation, as the host named it.
struct View {
  std::string name;                          // "gates", or "old_cell.contiguous()"
  std::string type;                          // "float"; may be empty
  const std::byte* begin = nullptr;          // the first element
  std::size_t element = 0;                   // bytes
  std::vector<std::int64_t> sizes, strides;  // in elements
  bool read_only = false;
  bool is_recent = true;  // named since the launch before
  // Known once it is bound to a launch: bytes from the first to behind the last element, and whether there
  // are holes between them.
  std::ptrdiff_t span = 0;
  bool has_holes = false;
};

struct Allocation {
  std::byte* begin;
  std::size_t size;
  Space space;
  std::string name;  // "d_x"; of a tensor that of its newest view
  Position where;    // of the call that made it; line 0 where nobody said
  bool read_only = false;
  bool freed = false;
  Position freed_where{};
  const void* storage = nullptr;   // of tensors: which
  std::function<bool()> alive;     // of tensors: whether any still has the storage
  std::vector<View> views;         // the newest last
  std::vector<View> used;          // by the arguments of the launch that runs; none: the whole of it
  std::shared_ptr<Shadow> shadow;  // made when a check needs it

  std::byte* end() const { return begin + size; }
};

// Replaces what is known of this memory.
Allocation& new_allocation(const void* begin, std::size_t size, Space space, std::string name,
                           Position where = {});
void forget(Allocation& allocation);
Allocation* find_allocation(const void* address);  // that contains it, freed ones included; or null
std::vector<Allocation*> all_allocations();        // by address

// An argument of the launch that runs, and the memory that it points into; null where nobody told us of it.
struct Bound {
  Argument argument;
  Allocation* allocation;
};
std::vector<Bound>& bound();
std::string null_arguments();  // "out", or "x and y"

// Around a launch: what its arguments point to, under the names of the kernel's parameters.
void bind(const std::vector<Argument>& arguments);
void unbind();

// What keeps the memory of temporary tensors until the launch (tensors.cpp): let go of under the lock of
// launches, and dropped when it is free.
void release_tensors();
void drop_tensors();
bool is_closure(const std::byte* address);  // the host's copy of the arguments, and what a launch captured

// The check of an access to what is not shared memory, before it happens; fills in `allocation`. Does not
// return when the thread must not go on.
void check_memory(Access& access, bool is_copy);
void check_alignment(const Access& access, const SharedVariable* variable = nullptr);

// The index of an element, by dimension; beyond the end the widest dimension's is too large. False: the
// address lies in a hole between elements.
bool index_of(const View& view, std::int64_t offset, std::vector<std::int64_t>& index);

// "new_h, a tensor of shape (3, 70), float"; "d_x, 1024 bytes of cudaMalloc in sum.cu:12:3"
std::string describe(const Allocation& allocation);
// "element [1, 69]" or "element 12", also beyond the end. Empty where elements are unknown.
std::string element_of(const Allocation& allocation, const void* address, std::size_t size);
// The name that a learner knows it by: the kernel's parameter, or the host's name.
std::string name_of(const Allocation& allocation);

}  // namespace emulator
EMULATOR_END
