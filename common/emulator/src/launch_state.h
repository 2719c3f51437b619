// What the parts of the runtime share while a launch runs.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "emulator/launch.h"
#include "emulator/state.h"
#include "emulator/synchronise.h"
#include "fiber.h"

extern "C" std::mutex emulator_one_launch;  // of the process

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

struct BlockOrder;
struct SharedShadow;

struct Block {
  std::uint64_t number = 0;  // in the grid, x fastest
  uint3 index{};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  unsigned started = 0, alive = 0, returned = 0;
  unsigned returned_before = 0;  // the barrier before
  bool is_out_of_step = false;   // its threads met at different barriers: the next ones are no news
  std::vector<Thread*> at_barrier;
  Votes votes{};    // of those at the barrier
  Votes decided{};  // of the barrier before
  Arena arena{};
  std::vector<char> filled;  // by variable: whether this block has used it
  std::vector<std::byte> memory;
  std::shared_ptr<BlockOrder> order;     // what its threads know of each other
  std::shared_ptr<SharedShadow> shadow;  // of its shared memory
};

struct LaunchState {
  const char* kernel;
  Configuration configuration;
  void (*body)(void*);
  void* closure;
  const void* closure_begin =
      nullptr;  // the kernel's arguments and what it captured: the host's memory, free to read
  bool has_structures = false;  // among the arguments, with pointers in them
  bool has_unknown = false;     // pointers in structures to memory that we know nothing of
  std::size_t closure_size = 0;

  unsigned threads_per_block;
  std::uint64_t blocks, opened = 0;
  unsigned most_resident;
  std::vector<Block*> resident;
  Block* starting = nullptr;  // the block with threads that have not started
  std::deque<Thread*> ready, turn;
  std::vector<Thread*> gathering;  // at __activemask, until nothing else can run
  bool is_stuck = false;           // none can go on
  std::vector<SharedVariable> variables;
  std::size_t shared_used = 0, shared_allowed = 0;  // bytes a block: of static variables, and of all
  cudaError_t error = cudaSuccess;                  // what a device would say of the kernel
  std::size_t shared_refused = 0;                   // of static variables: with the dynamic ones too many
};

constexpr std::size_t kArena = 256 << 10;  // of static variables; more than any device has
constexpr std::size_t kArenaGap = 256;     // in front of the dynamic part, and its alignment
constexpr std::size_t kArenaSpan = 2 * kArena;

extern LaunchState* state;  // of the launch that runs
extern Thread* current;     // the thread that runs

// True only while code of a kernel runs: a signal may abandon it there, but not inside the runtime.
extern volatile bool in_kernel;
extern volatile bool stop_wanted;  // a signal that came inside the runtime
void stop_here();                  // ends the launch for the reason of `stop_wanted`

// Around the runtime's own work on the stack of a kernel's thread.
class InRuntime {
 public:
  InRuntime() : was_in_kernel_(in_kernel) { in_kernel = false; }
  ~InRuntime() {
    in_kernel = was_in_kernel_;
    if (in_kernel && stop_wanted) stop_here();
  }

 private:
  const bool was_in_kernel_;
};

// The thread that runs has come to a call at which it may have to wait.
void come_to(Operation operation, std::uint32_t mask, Position where);
void wait();  // until made ready
void make_ready(Thread* thread);
void release_gathering();
void leave_block(Thread& thread);  // it returned: those who waited for it go on
void close_block(Block* block);    // all its threads have ended
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
void set_error(cudaError_t error);  // as a device would say it; the first stays
void set_failure(const char* what, ...) __attribute__((format(printf, 1, 2)));

// For signal handlers, from the context that they are given.
void find_own_code();                         // once, before
bool is_own_code(const void* address);        // of this extension, whose kernels and runtime it is
bool is_own_data(const void* address);        // its constants and variables
bool is_own_variable(const void* address);    // those that can be written
bool is_in_variable(const void* address);     // in one of them, and not between them
const void* counter_of(const void* context);  // where the program was
// Where the kernel was, or what it had called, and the calls that led there as far as the stack tells, the
// innermost first: those in this extension's code, which the emulator's own runtime is a part of.
constexpr int kCalls = 8;
void calls_in_kernel(const void* context, const void* (&counters)[kCalls]);
SourceLine innermost_line(const void* const (&counters)[kCalls]);  // the first that is a learner's

bool is_same(const Position& a, const Position& b);
uint3 place_in(dim3 size, std::uint64_t number);  // counted with x fastest
std::string in_words(uint3 index);                // "(31, 0, 0)"
const char* short_name(const char* path);         // relative to the working directory, if below it

}  // namespace emulator
EMULATOR_END
