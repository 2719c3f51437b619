// The running launch, its blocks and their threads, as shared by the parts of the runtime.
#pragma once

#include <pthread.h>

#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
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

// The barrier of a block, of a cluster or of the grid at which threads may arrive first and wait later.
struct GroupBarrier {
  unsigned phase = 0;    // how often it has completed
  unsigned arrived = 0;  // blocks whose threads have all arrived
  std::vector<Thread*> waiting;

  void reset() {
    phase = arrived = 0;
    waiting.clear();
  }
};

// Blocks that run at the same time and access each other's shared memory. Without clusters, one block.
struct Cluster {
  std::vector<Block*> blocks;  // by rank
  unsigned alive = 0;          // blocks with threads that have not ended
  GroupBarrier barrier;
};

struct BlockClock;
struct SharedShadow;
struct PeerAccesses;

struct Block {
  std::uint64_t number = 0;  // in the grid, x fastest, behind those of earlier launches of the same tree
  uint3 index{};
  Cluster* cluster = nullptr;  // that of its first block:
  Cluster own_cluster;
  unsigned cluster_rank = 0;
  std::vector<Thread> threads;
  std::vector<Warp> warps;
  unsigned started = 0, alive = 0, returned = 0;
  unsigned returned_before = 0;  // the previous barrier
  bool is_diverged = false;      // its threads reached different barriers: later barriers are not checked
  std::vector<Thread*> at_barrier;
  Votes votes{};                   // of those at the barrier
  Votes decided{};                 // of the previous barrier
  GroupBarrier barrier;            // of barrier_arrive and barrier_wait
  unsigned arrived[kScopes] = {};  // by scope: threads that have arrived in this phase, or
  bool has_arrived[kScopes] = {};  // all of them
  Arena arena{};
  std::vector<char> filled;  // by variable: whether this block has used it
  std::vector<std::byte> memory;
  std::shared_ptr<BlockClock> clock;     // when its threads synchronised
  std::shared_ptr<SharedShadow> shadow;  // of its shared memory
  std::shared_ptr<PeerAccesses> peers;   // accesses of other blocks of its cluster to it
};

// Which blocks and threads have started. Only scheduler.cpp and blocks.cpp write it, and of barriers
// group_barriers.cpp.
struct Schedule {
  unsigned threads_per_block = 0;
  std::uint64_t blocks = 0, opened = 0;
  std::uint64_t ended_by_checks = 0;  // blocks without a thread that returned
  dim3 cluster;                       // blocks in each dimension
  dim3 declared_cluster{0, 0, 0};     // by the kernel itself, if it differs: the launch begins again
  unsigned most_resident = 0;
  std::vector<Block*> resident;
  std::deque<Block*> starting;      // blocks with threads that have not started
  GroupBarrier barrier;             // of the grid
  bool has_group_barriers = false;  // whether a thread has arrived at one
  std::deque<Thread*> ready, yielded;
  std::vector<Thread*> at_activemask;  // until nothing else can run
  bool is_deadlocked = false;

  unsigned cluster_size() const { return cluster.x * cluster.y * cluster.z; }
};

// The `__shared__` variables of the kernel. Only shared_memory.cpp writes it.
struct SharedMemory {
  std::vector<SharedVariable> variables;
  std::size_t static_bytes = 0, allowed = 0;  // a block: of static variables, and of all
};

// What structures among the arguments point to. Only bindings.cpp writes it.
struct StructurePointers {
  bool has_any = false;
  bool has_unknown = false;  // to memory that is unknown to the runtime
};

// Why a device refuses a launch.
struct Refusal {
  cudaError_t error;
  const char* problem;  // a literal that identifies it
  std::string what;
};

struct BarrierObjects;
struct NamedBarriers;
struct AsyncCopies;
struct ChildLaunches;
struct KnownBlocks;

struct LaunchState {
  const char* kernel;
  Configuration configuration;
  void (*body)(void*);
  void* closure;  // the kernel's arguments and what it captured: the host's memory, free to read
  std::size_t closure_size;
  Schedule schedule;
  SharedMemory shared;
  StructurePointers structure_pointers;
  std::optional<Refusal> refusal;                 // known only when the kernel runs
  std::shared_ptr<BarrierObjects> barriers;       // cuda::barrier and its like
  std::shared_ptr<NamedBarriers> named_barriers;  // of PTX, by number
  std::shared_ptr<AsyncCopies> copies;            // that have not arrived
  int device = 0;                                 // that runs it
  cudaError_t error = cudaSuccess;                // the error that a GPU would return for the kernel
  std::shared_ptr<ChildLaunches> children;        // launches by its threads that have not run
  std::shared_ptr<const KnownBlocks> known;       // of a child: what all its threads know from the start
  int depth = 0;                                  // 0: the host has launched it
  std::uint64_t first_block = 0;                  // the number of its first block
};

constexpr std::size_t kArena = 256 << 10;  // of static variables; more than any device has
constexpr std::size_t kArenaGap = 256;     // before the dynamic part, and its alignment
constexpr std::size_t kArenaSpan = 2 * kArena;

// All state that changes while a launch runs, on each core that runs its blocks. `run` sets the launch, under
// emulator_one_launch, and clears it; the scheduler sets the thread; the others are set where their comments
// say.
struct Running {
  LaunchState* launch = nullptr;
  pthread_t os_thread{};              // that runs blocks of the launch
  Thread* thread = nullptr;           // null between two threads, and outside of launches
  bool observes_accesses = true;      // whether a check or the counts need the kernel's accesses
  const void* last_pc = nullptr;      // of the last access, set by on_access
  volatile bool in_kernel = false;    // only in a kernel's own code: a signal may abandon the kernel there
  volatile bool stop_wanted = false;  // set by a signal that came inside the runtime
};
extern EMULATOR_OF_CORE Running running;
extern bool is_launch_running;  // on whatever core

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

bool is_called_by_kernel();  // the calling code is a thread of a kernel

uint3 index_at(dim3 size, std::uint64_t number);  // counted with x fastest
std::string text_of(uint3 index);                 // "(31, 0, 0)"
inline bool is_same(const Position& a, const Position& b) {
  if (std::memcmp(&a, &b, sizeof(Position)) == 0) return true;
  return a.line() == b.line() && a.column() == b.column() && std::strcmp(a.file_name(), b.file_name()) == 0;
}

}  // namespace emulator
EMULATOR_END

// For programs that have loaded the extension: the number of launches that raised an exception, even if it
// was caught.
extern "C" __attribute__((visibility("default"))) unsigned long emulator_failed_launches();
