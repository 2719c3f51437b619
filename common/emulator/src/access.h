// One load or store of a kernel, on its way through the checks.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/state.h"
#include "memory.h"

EMULATOR_BEGIN
namespace emulator {

enum class Kind : std::uint8_t { plain, is_volatile, atomic, exchange };
constexpr int kKinds = 4;
// An exchange may leave aside what it reads.
constexpr bool is_atomic(Kind kind) { return kind >= Kind::atomic; }

struct Access {
  std::byte* address;
  std::size_t size;  // bytes: 1, 2, 4, 8 or 16, or any number of a copy
  bool is_write;     // an atomic reads and writes
  Kind kind;
  const void* counter;     // of the instruction in the kernel
  Allocation* allocation;  // null for shared memory
  std::byte* arena;        // first byte of the part of shared memory; null for global memory
};

extern bool looks_at_accesses;    // whether anything is on that wants to see them, in the launch that runs
extern const void* last_counter;  // of the access before

// Called by the hooks, on the stack of the thread that runs, before the access happens. Local variables do
// not come here. Does not return when the thread must not go on.
// A copy of a structure may begin anywhere.
void on_access(void* address, std::size_t size, bool is_write, Kind kind, const void* counter,
               bool is_copy = false);

// Both, for a copy by the C library; `from` may be null.
void check_copy(void* to, const void* from, std::size_t bytes, const void* counter);

std::string name_of(const SharedVariable& variable);
std::string element_of(const SharedVariable& variable, std::ptrdiff_t offset);  // "tile[3][16]"
std::string describe(const SharedVariable& variable);

// The rest of a block goes on without this thread: for one whose next step would do damage.
[[noreturn]] void end_thread();

// order.cpp and shadow.cpp: initialisation and races. Of both global and shared memory.
void check_shadow(const Access& access);
void shadow_launch_begins();
void shadow_launch_ends();
void shadow_block_begins(Block& block);
void shadow_thread_ends(const Thread& thread);
void shadow_block_barrier(Block& block);
void shadow_warp_meets(Block& block, unsigned warp, std::uint32_t mask);
void shadow_fence(const Thread& thread);
// The host wrote (memset, copies): from here on initialised. Fresh: nobody has written.
void mark_written(Allocation& allocation, const void* begin, std::size_t size);
void mark_fresh(Allocation& allocation, const void* begin, std::size_t size);
// A copy from memory of the device: `to` is then as written as `from` is.
void copy_marks(Allocation& to, const void* to_begin, const Allocation& from, const void* from_begin,
                std::size_t size);
// How many bytes of a range nobody has written, and where the first of them is.
struct Unwritten {
  std::size_t bytes, first;  // `first` counts from the range's begin
};
Unwritten unwritten_in(const Allocation& allocation, const void* begin, std::size_t size);

}  // namespace emulator
EMULATOR_END
