// How a kernel uses memory, counted by source line; only while `counting` is set.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "../memory/access.h"
#include "warp_requests.h"

EMULATOR_BEGIN
namespace emulator {

extern bool counting;  // from the start where EMULATOR_COUNTS names a file, which is written at the end

// Called by the rest of the runtime while `counting` is set.
void count_launch_begins();
void count_access(const Access& access, bool is_copy);
void count_block_barrier(const Block& block);
void count_warp_synchronised(const Block& block, unsigned warp, std::uint32_t lanes);
void count_thread_ends(const Thread& thread);  // it is no longer a live lane of its warp

// ---- only for the files of this folder

// The counts of one kernel and one use: a load through a generic pointer may access global and shared memory.
struct CountedInstruction {
  unsigned kernel;
  const void* pc;
  Use use;
  Totals totals;
};

struct CountedKernel {
  std::string name;
  std::uint64_t launches = 0;
  dim3 grid{}, block{};  // of the last launch
  // Launches that did not use torch's current stream, and launches without a device guard around them.
  std::uint64_t on_other_streams = 0, unguarded = 0;
  std::uint64_t idle_blocks = 0;      // that accessed no memory
  std::uint64_t idle_warps = 0;       // that accessed no global memory
  std::uint64_t stored_bytes = 0;     // of global memory, each element once for a launch
  std::uint64_t repeated_stores = 0;  // to elements that another thread of the launch had stored before
  std::string first_repeated;         // "element [1, 0] of out, by block ..."
};

// The requests of one instruction of a warp that are not complete yet.
struct RequestQueue {
  std::uint64_t first = 0;          // number of the oldest
  std::uint64_t next[kLanes] = {};  // the one that a lane's next execution joins
  std::deque<Request> open;
};

struct WarpRequests {
  std::map<unsigned, RequestQueue> queues;  // by instruction
  unsigned pending = 0;                     // requests in all of them
};

// An array that the traced threads access, with the name and shape that the kernel's author knows.
struct TracedArray {
  std::string name;
  std::uintptr_t begin, element;             // address, bytes
  std::vector<std::int64_t> sizes, strides;  // in elements; empty where no shape is known
};

struct TracedAccess {
  unsigned instruction, array, thread;
  std::uint64_t request;  // of that instruction in the thread's warp
  std::int64_t offset;    // bytes from the array's begin
  std::uintptr_t size;
};

struct Trace {
  std::int64_t block = -1;                // the block whose threads are traced; negative: none
  unsigned first = 0, last = 0;           // which of them
  std::map<const void*, unsigned> known;  // arrays of the launch that runs, by the memory they are in
  std::vector<TracedArray> arrays;
  std::vector<TracedAccess> accesses;
};
void trace_access(const Access& access, unsigned instruction, std::uint64_t request);

// What the blocks and threads of the running launch have done. Cleared when the next launch begins.
struct CountedThread {
  std::uint64_t block;
  unsigned rank;
  bool operator==(const CountedThread&) const = default;
};
struct LaunchCounts {
  std::unordered_set<std::uint64_t> busy_blocks, busy_warps;
  std::unordered_map<std::uintptr_t, CountedThread> stored_by;  // by address; the first kMostStored elements
};
void count_as_busy(const Thread& thread, bool is_global);
void count_store(const Access& access);

struct Counts {
  std::vector<CountedKernel> kernels;
  unsigned kernel = 0;  // which of them
  std::vector<CountedInstruction> instructions;
  std::map<std::pair<const void*, std::pair<unsigned, Use>>, unsigned> known;  // by pc, kernel and use
  std::unordered_map<const Block*, std::vector<WarpRequests>> warps;
  LaunchCounts launch;
  Trace trace;
};
inline Counts& counts() {
  static auto& all = *new Counts;  // outlives every static object
  return all;
}
std::string counts_as_json();

}  // namespace emulator
EMULATOR_END

// For programs that have loaded the extension. `begin` forgets what was counted
// before, and counts from here on. Each access of the threads `first` to `last` of a
// block is kept, too; blocks are numbered with x fastest, -1 is none. `end` stops, and
// returns what was counted as JSON (counts_json.cpp), good until it is called again.
extern "C" __attribute__((visibility("default"))) void emulator_counts_begin(long long block, unsigned first,
                                                                             unsigned last);
extern "C" __attribute__((visibility("default"))) const char* emulator_counts_end();
