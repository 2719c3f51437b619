// The running launch, its blocks and their threads, as shared by the parts of the runtime.
#pragma once

#include <pthread.h>

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

// A warp function that lanes have reached, and at which they wait for the other lanes in its mask.
struct Collective {
  Operation operation;
  std::uint32_t mask, arrived;
};

struct Warp {
  std::uint32_t alive;  // lanes that have not returned, started or not
  unsigned pending;     // collectives under way
  Collective collectives[32];
};

struct BlockClock;
struct SharedShadow;

struct Block {
  std::uint64_t number = 0;  // in the grid, x fastest
  uint3 index{};
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  unsigned started = 0, alive = 0, returned = 0;
  unsigned returned_before = 0;  // the previous barrier
  bool is_diverged = false;      // its threads reached different barriers: later barriers are not checked
  std::vector<Thread*> at_barrier;
  Votes votes{};    // of those at the barrier
  Votes decided{};  // of the previous barrier
  Arena arena{};
  std::vector<char> filled;  // by variable: whether this block has used it
  std::vector<std::byte> memory;
  std::shared_ptr<BlockClock> clock;     // when its threads synchronised
  std::shared_ptr<SharedShadow> shadow;  // of its shared memory
};

// Which blocks and threads have started. Only scheduler.cpp writes it.
struct Schedule {
  unsigned threads_per_block = 0;
  std::uint64_t blocks = 0, opened = 0;
  unsigned most_resident = 0;
  std::vector<Block*> resident;
  Block* starting = nullptr;  // the block with threads that have not started
  std::deque<Thread*> ready, yielded;
  std::vector<Thread*> at_activemask;  // until nothing else can run
  bool is_deadlocked = false;
};

// The `__shared__` variables of the kernel. Only shared_memory.cpp writes it.
struct SharedMemory {
  std::vector<SharedVariable> variables;
  std::size_t static_bytes = 0, allowed = 0;  // a block: of static variables, and of all
  std::size_t refused_bytes = 0;              // of static variables: too many together with the dynamic ones
};

// What structures among the arguments point to. Only bindings.cpp writes it.
struct StructurePointers {
  bool has_any = false;
  bool has_unknown = false;  // to memory that is unknown to the runtime
};

struct LaunchState {
  const char* kernel;
  Configuration configuration;
  void (*body)(void*);
  void* closure;  // the kernel's arguments and what it captured: the host's memory, free to read
  std::size_t closure_size;
  Schedule schedule;
  SharedMemory shared;
  StructurePointers structure_pointers;
  int device = 0;                   // that runs it
  cudaError_t error = cudaSuccess;  // the error that a GPU would return for the kernel
};

constexpr std::size_t kArena = 256 << 10;  // of static variables; more than any device has
constexpr std::size_t kArenaGap = 256;     // before the dynamic part, and its alignment
constexpr std::size_t kArenaSpan = 2 * kArena;

// All state that changes while a launch runs. `run` sets the launch, under emulator_one_launch, and clears
// it; the scheduler sets the thread; the others are set where their comments say.
struct Running {
  LaunchState* launch = nullptr;
  pthread_t os_thread{};              // that runs the launch
  Thread* thread = nullptr;           // null between two threads, and outside of launches
  bool observes_accesses = true;      // whether a check or the counts need the kernel's accesses
  const void* last_pc = nullptr;      // of the last access, set by on_access
  volatile bool in_kernel = false;    // only in a kernel's own code: a signal may abandon the kernel there
  volatile bool stop_wanted = false;  // set by a signal that came inside the runtime
};
extern Running running;

void stop_launch();  // because `running.stop_wanted` is set

// Around the runtime's own work on the stack of a kernel's thread.
class InRuntime {
 public:
  InRuntime() : was_in_kernel_(running.in_kernel) { running.in_kernel = false; }
  ~InRuntime() {
    running.in_kernel = was_in_kernel_;
    if (running.in_kernel && running.stop_wanted) stop_launch();
  }

 private:
  const bool was_in_kernel_;
};

uint3 index_at(dim3 size, std::uint64_t number);  // counted with x fastest
std::string text_of(uint3 index);                 // "(31, 0, 0)"
bool is_same(const Position& a, const Position& b);

}  // namespace emulator
EMULATOR_END

// For programs that have loaded the extension: the number of launches that raised an exception, even if it
// was caught.
extern "C" __attribute__((visibility("default"))) unsigned long emulator_failed_launches();
