// What runs and where: this header has everything that a check of running kernels needs.
//
// One launch runs at a time in a process's copy of the runtime, on the OS thread that asked for it and, in a
// program without checks, on threads of the runtime for the other cores. On each of them, blocks are opened
// one after another, or cluster after cluster; only when every thread of the open ones waits are more of them
// resident at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

#include "emulator/array_shape.h"
#include "emulator/source_location.h"
#include "emulator/types.h"

// The last parameter of what kernels and their hosts call.
#define EMULATOR_HERE ::emulator::Position where = ::emulator::Position::current()

namespace emulator {

using Position = std::source_location;  // file, line and column of a call or a launch

class Fiber;
struct Block;

// What a thread waits for; also the name under which lanes of a warp meet.
enum class Operation : std::uint8_t {
  none,
  yield,  // it gave others a turn, and may continue at any time
  activemask,
  syncthreads,
  syncthreads_count,
  syncthreads_and,
  syncthreads_or,
  syncwarp,
  shfl,
  shfl_up,
  shfl_down,
  shfl_xor,
  ballot,
  any,
  all,
  match_any,
  match_all,
  reduce_add,
  reduce_min,
  reduce_max,
  reduce_and,
  reduce_or,
  reduce_xor,
  block_wait,  // at a barrier that the thread has arrived at before
  cluster_wait,
  grid_wait,
  cluster_sync,
  grid_sync,
  object_wait,  // at a barrier object, for its phase to complete
  bar_sync,     // at a barrier that has a number
  tile_sync,    // with the other threads of a tile of several warps
  // Of all lanes of a warp (warp_wide.h).
  mma_sync,
  load_matrix_sync,
  store_matrix_sync,
  mma,
  ldmatrix,
  stmatrix,
  bmma_sync,
};

// A shuffle that took the value of a lane outside of its mask. This undefined value may be thrown away.
struct Stray {
  static constexpr unsigned kNoLane = 32;
  unsigned lane = kNoLane;  // whose value it is
  Operation operation;
  std::uint32_t mask, gone;  // of the mask, the lanes that had returned or did not exist
  Position where;
  std::uint64_t given;  // in exchange
  bool is_halving;      // in the upper half of a sum that halves its lanes: the sum goes on, but is not used
};

// Whose threads a group barrier synchronises.
enum class Scope : std::uint8_t { block, cluster, grid };
constexpr unsigned kScopes = 3;

// One CUDA thread that has started and has not ended.
struct Thread {
  uint3 index;    // threadIdx
  unsigned rank;  // number in its block, x fastest
  Block* block;
  Fiber* fiber;         // the stack it keeps while it waits
  Operation operation;  // what it waits for
  std::uint32_t mask;   // lanes that it waits for, for warp functions
  Position where;       // the call at which it waits
  std::uint64_t value;  // given to the other lanes
  std::uint64_t result;
  unsigned source;  // lane whose value it takes
  bool was_ended;   // by a check: it did not return
  int last_error;   // a cudaError_t, of its launches
  Stray stray;      // its last shuffle, if it was one

  // By scope: whether it has arrived at that barrier and has not waited since, for which phase, and where.
  bool has_arrived[kScopes];
  unsigned arrived_phase[kScopes];
  std::uint32_t arrived_time[kScopes];  // by the clock of its block
  Position arrived_where[kScopes];

  unsigned warp() const { return rank / 32; }
  unsigned lane() const { return rank % 32; }
};

// A `__shared__` variable of a block, static or dynamic.
struct SharedVariable {
  long key;              // from the rewriter: which declaration of the file
  const char* function;  // which function, and which instance of a template
  const char* name;
  std::size_t offset, size;  // in its part of the arena
  bool is_dynamic;
  ArrayShape shape;
};

// Shared memory of one block: static variables from `bytes` on, in order of first use; `extern` ones at
// `dynamic`.
struct Arena {
  std::byte *bytes, *dynamic;
  std::size_t dynamic_size;
};

// Uninitialised memory reads as this: NaN as float, double, half and bfloat16, 2147188731 as int.
constexpr std::uint32_t kUninitialised = 0x7ffb7ffb;

// "kernel forward_kernel<float>, block (0, 3, 0), thread (31, 0, 0)"; empty outside kernels.
struct Place {
  char text[512];
};

// Where code of this extension was compiled from: "lltm_kernel.cu:23", or "" where that cannot be found.
struct SourceLine {
  char text[512];
};

EMULATOR_BEGIN
const char* name_of(Operation operation);  // "__syncthreads"

Place describe(const Thread* thread);

// Whether the calling code runs in a kernel: a function for host and device asks where nvcc compiles it
// twice.
bool runs_in_kernel();
constexpr bool is_device_code() { return !__builtin_is_constant_evaluated() && runs_in_kernel(); }

// Ends the launch: raised there as std::runtime_error with kernel, block and thread before `what`. Objects on
// the stacks of the kernel's threads are not destroyed.
[[noreturn]] void abandon(const char* what, ...) __attribute__((format(printf, 1, 2)));

SourceLine line_of(const void* pc);
std::vector<SourceLine> lines_of(const std::vector<const void*>& pcs);  // in one go
EMULATOR_END

}  // namespace emulator
