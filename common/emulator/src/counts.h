// How a kernel uses memory: counted by source line, while somebody wants to know.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <unordered_map>
#include <vector>

#include "access.h"
#include "request.h"

EMULATOR_BEGIN
namespace emulator {

extern bool counting;  // from the start where EMULATOR_COUNTS names a file, which is written at the end

// What the rest of the runtime tells while somebody counts.
void count_launch_begins();
void count_access(const Access& access, bool is_copy);
void count_block_barrier(const Block& block);
void count_warp_meets(const Block& block, unsigned warp, std::uint32_t lanes);
void count_thread_ends(const Thread& thread);  // and is no longer among the living lanes of its warp

// From here on for counts*.cpp alone.

// One kernel's, with one use: a load through a generic pointer may be of global and of shared memory.
struct Instruction {
  unsigned kernel;
  const void* counter;
  Use use;
  Totals totals;
};

struct CountedKernel {
  std::string name;
  std::uint64_t launches;
  dim3 grid, block;  // of the last launch
};

// The requests of one instruction of a warp that are not complete yet.
struct Queue {
  std::uint64_t first = 0;          // number of the oldest
  std::uint64_t next[kLanes] = {};  // the one that a lane's next execution joins
  std::deque<Request> open;
};

struct OpenWarp {
  std::map<unsigned, Queue> queues;  // by instruction
  unsigned open = 0;                 // requests in all of them
};

// An array that the traced threads touch, as the kernel's author sees it.
struct TracedArray {
  std::string name;
  std::uintptr_t begin, element;             // address, bytes
  std::vector<std::int64_t> sizes, strides;  // in elements; empty where nobody said
};

struct Touch {
  unsigned instruction, array, thread;
  std::uint64_t request;  // of that instruction in the thread's warp
  std::int64_t offset;    // bytes from the array's begin
  std::uintptr_t size;
};

struct Trace {
  std::int64_t block = -1;                // whose threads are traced; below zero: none
  unsigned first = 0, last = 0;           // which of them
  std::map<const void*, unsigned> known;  // arrays of the launch that runs, by the memory they are in
  std::vector<TracedArray> arrays;
  std::vector<Touch> touches;
};
void trace_access(const Access& access, unsigned instruction, std::uint64_t request);

struct Counts {
  std::vector<CountedKernel> kernels;
  unsigned running = 0;  // which of them
  std::vector<Instruction> instructions;
  std::map<std::pair<const void*, std::pair<unsigned, Use>>, unsigned> known;  // by counter, kernel and use
  std::unordered_map<const Block*, std::vector<OpenWarp>> warps;
  Trace trace;
};
Counts& counts();
std::string counts_as_json();

}  // namespace emulator
EMULATOR_END

// For whoever has loaded the extension. `begin` forgets what was counted before, and counts from here on.
// Each access of the threads `first` to `last` of a block is kept, too; blocks are numbered with x fastest,
// -1 is none. `end` stops, and returns what was counted as JSON (counts_json.cpp), good until it is called
// again.
extern "C" __attribute__((visibility("default"))) void emulator_counts_begin(long long block, unsigned first,
                                                                             unsigned last);
extern "C" __attribute__((visibility("default"))) const char* emulator_counts_end();
