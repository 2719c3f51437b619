// Global memory by name: tensors, allocations, variables at file scope.
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

enum class Space : std::uint8_t {
  tensor,    // the storage of a tensor
  device,    // cudaMalloc
  array,     // cudaMallocArray
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
  bool is_recent = true;  // named since the previous launch
  // Known when it is bound to a launch: bytes from the first element to the end of the last, and whether
  // there are gaps between elements.
  std::ptrdiff_t span = 0;
  bool has_holes = false;
};

struct Allocation {
  std::byte* begin;
  std::size_t size;
  Space space;
  std::string name;  // "d_x"; of a tensor that of its newest view
  Position where;    // of the call that made it; line 0 where it is unknown
  bool read_only = false;
  std::size_t scalar = 0;  // of a variable: bytes of each element, if it is a number or a pointer
  int device = 0;          // on which it was allocated
  bool is_static = false;  // a `__managed__` variable: never freed
  // Host memory that the program has registered: neither protected from the host nor checked for leaks.
  bool is_registered = false;
  bool is_of_graph = false;  // allocated anew by each launch of a graph, at the same address
  bool is_allocated = true;  // of a graph: by a launch that has run, and not freed since
  bool freed = false;
  Position freed_where{};
  const void* storage = nullptr;   // for tensors: which storage
  std::function<bool()> alive;     // for tensors: whether any tensor still uses the storage
  std::vector<View> views;         // the newest last
  std::vector<View> used;          // by the arguments of the running launch; empty: all of it
  std::shared_ptr<Shadow> shadow;  // made when a check needs it

  std::byte* end() const { return begin + size; }
};

// Replaces the allocations that this memory overlaps.
Allocation& new_allocation(const void* begin, std::size_t size, Space space, std::string name,
                           Position where = {});
void forget(Allocation& allocation);
Allocation* find_allocation(const void* address);  // that contains it, freed ones included; or null

// The memory that an instruction accessed last, and most likely accesses again.
struct LastAccess {
  const void* pc;
  Allocation* allocation;        // null for shared memory
  std::byte* arena;              // first byte of the part of shared memory; null for global memory
  const Block* block;            // whose shared memory it is
  const std::byte *begin, *end;  // the instruction may access what lies between, and needs no other check
};
extern LastAccess last_accesses[128];  // no entry outlives its allocation or the launch
inline LastAccess& last_access_of(const void* pc) {
  return last_accesses[reinterpret_cast<std::uintptr_t>(pc) / 4 % 128];
}
void forget_last_accesses();

inline Allocation* find_allocation(const void* address, const void* pc) {
  LastAccess& last = last_access_of(pc);
  Allocation* known = last.pc == pc ? last.allocation : nullptr;
  if (known && address >= known->begin && address < known->end()) return known;
  Allocation* found = find_allocation(address);
  if (found) last = {pc, found, nullptr, nullptr, nullptr, nullptr};
  return found;
}
// The allocation that an instruction accessed last, even if the access is out of bounds now; null: unknown.
inline const Allocation* last_allocation_of(const void* pc) {
  const LastAccess& last = last_access_of(pc);
  return last.pc == pc ? last.allocation : nullptr;
}
// An allocation of this kind that ends less than `bytes` before the address, or begins after it.
Allocation* find_neighbour(const void* address, Space space, std::ptrdiff_t bytes);
std::vector<Allocation*> all_allocations();  // by address

// The index of an element in each dimension; past the end, the index in the widest dimension is too large.
// False: the address is in a gap between elements.
bool index_of(const View& view, std::int64_t offset, std::vector<std::int64_t>& index);

// "new_h, a tensor of shape (3, 70), float"; "d_x, which has 256 elements (1024 bytes, allocated in
// sum.cu:12)"
std::string describe(const Allocation& allocation);
// "element [1, 69]" or "element 12", also beyond the end. Empty where elements are unknown.
std::string element_of(const Allocation& allocation, const void* address, std::size_t size);
// The kernel's parameter, or the host's name.
std::string name_of(const Allocation& allocation);
// The same for memory that one finding describes: each thread has its own heap block.
inline const void* identity_of(const Allocation& allocation) {
  return allocation.space == Space::heap ? static_cast<const void*>(allocation.where.file_name())
                                         : &allocation;
}

}  // namespace emulator
EMULATOR_END
