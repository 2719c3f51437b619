// What runs, and where: everything that a check of running kernels needs to know is in this header.
//
// One launch runs at a time in a process's copy of the runtime, on the OS thread that asked for it. Inside it
// blocks are opened one after another; only when every thread of the open ones waits are several resident at
// once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <source_location>
#include <vector>

#include "emulator/types.h"

namespace emulator {

using Position = std::source_location;  // file, line and column of a barrier, a warp function or a launch

class Fiber;
struct Block;

// What a thread waits for; also the name under which lanes of a warp meet.
enum class Operation : std::uint8_t {
  none,
  turn,  // it gave others a turn, and may go on at any time
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
};
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

  unsigned warp() const { return rank / 32; }
  unsigned lane() const { return rank % 32; }
};

// A `__shared__` variable of a block, static or dynamic.
struct SharedVariable {
  long key;              // from the rewriter: which declaration of the file
  const char* function;  // which function, and which instance of a template
  std::size_t offset, size;
};

// Shared memory of one block: static variables from `bytes` on, in order of first use; `extern` ones at
// `dynamic`.
struct Arena {
  std::byte *bytes, *dynamic;
  std::size_t dynamic_size;
};

// Memory that nobody wrote reads as this: NaN as float, double, half and bfloat16, 2147188731 as int.
constexpr std::uint32_t kUnwritten = 0x7ffb7ffb;

// "kernel forward_kernel<float>, block (0, 3, 0), thread (31, 0, 0)"; empty outside kernels.
struct Place {
  char text[512];
};

// Where code of this extension was compiled from: "lltm_kernel.cu:23", or "" where that cannot be found.
struct SourceLine {
  char text[512];
};

// Told of what orders or shares memory between threads. Its functions run on the stack of the thread
// concerned.
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void launch_begins(const char* /*kernel*/, dim3 /*grid*/, dim3 /*block*/, Position) {}
  virtual void launch_ends() {}
  virtual void block_begins(Block&) {}
  virtual void thread_ends(const Thread&) {}
  virtual void block_barrier(Block&) {}  // released: all its living threads were there
  virtual void warp_meets(Block&, unsigned /*warp*/, std::uint32_t) {}   // these lanes were there
  virtual void atomic(const Thread&, void* /*address*/, std::size_t) {}  // about to happen
  virtual void fence(const Thread&) {}
};

EMULATOR_BEGIN
extern Observer* observer;  // none by default

const char* name_of(Operation operation);  // "__syncthreads"

const Thread* current_thread();                             // null outside kernels
const char* current_kernel();                               // null outside kernels
const std::vector<SharedVariable>& shared_variables();      // of the kernel that runs, so far
const std::vector<Thread>& threads_of(const Block& block);  // by rank; those that wait have an operation
const Arena& arena_of(const Block& block);
uint3 index_of(const Block& block);

Place describe(const Thread* thread);

// Ends the launch: raised there as std::runtime_error with kernel, block and thread before `what`. Objects on
// the stacks of the kernel's threads are not destroyed.
[[noreturn]] void abandon(const char* what, ...) __attribute__((format(printf, 1, 2)));

SourceLine line_of(const void* program_counter);
EMULATOR_END

}  // namespace emulator
