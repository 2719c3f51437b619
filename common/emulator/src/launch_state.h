// What the parts of the runtime share while a launch runs.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "emulator/launch.h"
#include "emulator/state.h"
#include "emulator/synchronise.h"
#include "fiber.h"

EMULATOR_BEGIN
namespace emulator {

// Lanes of a warp that wait for each other.
struct Meeting {
  Operation operation;
  std::uint32_t mask, arrived;
};

struct Warp {
  std::uint32_t alive;  // lanes that have not returned, started or not
  unsigned open;        // meetings under way
  Meeting meetings[32];
};

struct Block {
  std::uint64_t number = 0;  // in the grid, x fastest
  uint3 index{};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  unsigned started = 0, alive = 0;
  std::vector<Thread*> at_barrier;
  Votes votes{};    // of those at the barrier
  Votes decided{};  // of the barrier before
  Arena arena{};
  std::vector<char> filled;  // by variable: whether this block has used it
  std::vector<std::byte> memory;
};

struct LaunchState {
  const char* kernel;
  Configuration configuration;
  void (*body)(void*);
  void* closure;

  unsigned threads_per_block;
  std::uint64_t blocks, opened = 0;
  unsigned most_resident;
  std::vector<Block*> resident;
  Block* starting = nullptr;  // the block with threads that have not started
  std::deque<Thread*> ready, turn;
  std::vector<SharedVariable> variables;
  std::size_t shared_used = 0, shared_allowed = 0;  // bytes a block: of static variables, and of all
  cudaError_t refused = cudaSuccess;                // what a device would have said before the launch
};

extern LaunchState* state;  // of the launch that runs
extern Thread* current;     // the thread that runs

// True only while code of a kernel runs: a signal may abandon it there, but not inside the runtime.
extern volatile bool in_kernel;
extern volatile bool stop_wanted;  // a signal that came inside the runtime
void stop_here();                  // ends the launch for the reason of `stop_wanted`

// Around the runtime's own work on the stack of a kernel's thread.
class InRuntime {
 public:
  InRuntime() { in_kernel = false; }
  ~InRuntime() {
    in_kernel = true;
    if (stop_wanted) stop_here();
  }
};

// The thread that runs has come to a call at which it may have to wait.
void come_to(Operation operation, std::uint32_t mask, Position where);
void wait();  // until made ready
void make_ready(Thread* thread);
void leave_block(Thread& thread);  // it returned: those who waited for it go on
std::string waiting_threads();     // who waits where, for a launch that cannot go on
void clear_shared(Block& block);

// Catches what would end the process, for as long as it lives.
class FaultGuard {
 public:
  FaultGuard();
  ~FaultGuard();
  FaultGuard(const FaultGuard&) = delete;
};

// Why the launch failed: null while it has not. The first reason stays.
const char* failure();
void set_failure(const char* what, ...) __attribute__((format(printf, 1, 2)));

// For signal handlers, from the context that they are given.
void find_own_code();                         // once, before
bool is_own_code(const void* address);        // of this extension, whose kernels and runtime it is
const void* counter_of(const void* context);  // where the program was
const void* counter_in_kernel(
    const void* context);  // the same, or the call of a library that led there; or null

const char* short_name(const char* path);  // relative to the working directory, if below it

}  // namespace emulator
EMULATOR_END
