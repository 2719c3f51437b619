// The memory requests of the warps of a kernel.
//
// On a GPU, the lanes of a warp execute a load together, and their addresses form one request. Here the lanes
// run one after another, and the k-th executions of an instruction by all lanes are combined into one
// request. Lanes that meet at a barrier or in a warp function continue together: from there on, a lane that
// executed an instruction less often than the others has the same count. A lane that is far ahead lets the
// others run, so that only a few requests are open at a time.
#include "counts.h"

#include <algorithm>

#include "../state/launch_state.h"
#include "../state/module_image.h"

namespace emulator {

namespace {

constexpr unsigned kMostOpen = 1024;  // requests of a warp
constexpr std::uint32_t kAll = 0xffffffff;

bool has(std::uint32_t lanes, unsigned lane) { return lanes >> lane & 1; }

void finish_until(WarpRequests& warp, unsigned instruction, RequestQueue& queue, std::uint64_t number) {
  CountedInstruction& one = counts().instructions[instruction];
  for (; queue.first < number && !queue.open.empty(); queue.first++, warp.pending--) {
    one.totals.add(queue.open.front(), one.use);
    queue.open.pop_front();
  }
}

// These lanes are at the same place in the kernel. Requests that no live lane can join any more are complete.
void level(WarpRequests& warp, std::uint32_t lanes, std::uint32_t alive) {
  for (auto& [instruction, queue] : warp.queues) {
    std::uint64_t most = 0, least = queue.first + queue.open.size();
    for (unsigned lane = 0; lane < kLanes; lane++)
      if (has(lanes, lane)) most = std::max(most, queue.next[lane]);
    for (unsigned lane = 0; lane < kLanes; lane++) {
      if (has(lanes, lane)) queue.next[lane] = most;
      if (has(alive, lane)) least = std::min(least, queue.next[lane]);
    }
    finish_until(warp, instruction, queue, least);
  }
}

WarpRequests* find_warp(const Block& block, unsigned warp) {
  const auto found = counts().warps.find(&block);
  return found == counts().warps.end() ? nullptr : &found->second[warp];
}

WarpRequests& warp_of(const Thread& thread) {
  auto& warps = counts().warps[thread.block];
  if (warps.empty()) warps.resize(thread.block->warps.size());
  return warps[thread.warp()];
}

Use use_of(const Access& access) {
  const Use load = access.arena ? Use::shared_load : Use::global_load;
  return Use(int(load) + (is_atomic(access.kind) ? 2 : access.is_write ? 1 : 0));
}

unsigned instruction_of(const Access& access) {
  Counts& all = counts();
  const Use use = use_of(access);
  const auto which = unsigned(all.instructions.size());
  const auto [known, is_new] = all.known.insert({{access.pc, {all.kernel, use}}, which});
  if (is_new) all.instructions.push_back({all.kernel, access.pc, use, {}});
  return known->second;
}

bool is_open(const RequestQueue& queue, std::uint64_t number) {
  return number < queue.first + queue.open.size();
}

bool is_too_far(const WarpRequests& warp, const RequestQueue& queue) {
  return warp.pending >= kMostOpen && !is_open(queue, queue.next[running.thread->lane()]);
}

// Returns the request's number.
std::uint64_t join(WarpRequests& warp, unsigned instruction, std::uintptr_t address, std::uintptr_t size) {
  const unsigned lane = running.thread->lane();
  RequestQueue& queue = warp.queues[instruction];
  if (is_too_far(warp, queue)) {
    yield_thread();
    if (is_too_far(warp, queue))
      level(warp, kAll, kAll);  // a lane that is still behind waits for something else
  }
  const std::uint64_t number = queue.next[lane]++;
  for (; !is_open(queue, number); warp.pending++) queue.open.emplace_back();
  Request& request = queue.open[number - queue.first];
  request.lanes |= 1u << lane;
  request.size = size;
  request.addresses[lane] = address;
  return number;
}

// A GPU keeps constants separate from global memory.
bool is_counted(const Access& access) {
  if (access.arena) return true;
  if (access.allocation) return access.allocation->space != Space::variable || !access.allocation->read_only;
  return !is_own_data(access.address);
}

// A structure that may begin at any address is copied word by word.
std::size_t word_of(std::size_t size) { return size % 4 == 0 ? 4 : size % 2 == 0 ? 2 : 1; }

}  // namespace

void count_launch_begins() {
  Counts& all = counts();
  all.warps.clear();  // of an abandoned launch
  all.trace.known.clear();
  const auto found = std::find_if(all.kernels.begin(), all.kernels.end(), [](const CountedKernel& kernel) {
    return kernel.name == running.launch->kernel;
  });
  all.kernel = unsigned(found - all.kernels.begin());
  if (found == all.kernels.end()) all.kernels.push_back({.name = running.launch->kernel});
  const Configuration& configuration = running.launch->configuration;
  CountedKernel& kernel = all.kernels[all.kernel];
  kernel.launches++;
  kernel.grid = configuration.grid;
  kernel.block = configuration.block;
  kernel.on_other_streams += configuration.stream != current_stream(running.launch->device);
  kernel.unguarded += device_guards() == 0;
  const auto& schedule = running.launch->schedule;
  kernel.idle_blocks += schedule.blocks;
  kernel.idle_warps += schedule.blocks * ((schedule.threads_per_block + kLanes - 1) / kLanes);
  all.launch = {};
}

void count_access(const Access& access, bool is_copy) {
  if (!is_counted(access)) return;
  count_as_busy(*running.thread, !access.arena);
  if (use_of(access) == Use::global_store) count_store(access);
  const unsigned instruction = instruction_of(access);
  WarpRequests& warp = warp_of(*running.thread);
  const auto begin = reinterpret_cast<std::uintptr_t>(access.address);
  const std::size_t word = is_copy ? word_of(access.size) : access.size;
  for (std::size_t at = 0; at < access.size; at += word) {
    const std::uint64_t request = join(warp, instruction, begin + at, word);
    if (at == 0) trace_access(access, instruction, request);
  }
}

void count_block_barrier(const Block& block) {
  for (unsigned warp = 0; warp < block.warps.size(); warp++)
    if (WarpRequests* open = find_warp(block, warp))
      level(*open, block.warps[warp].alive, block.warps[warp].alive);
}

void count_warp_synchronised(const Block& block, unsigned warp, std::uint32_t lanes) {
  if (WarpRequests* open = find_warp(block, warp)) level(*open, lanes, block.warps[warp].alive);
}

void count_thread_ends(const Thread& thread) {
  const Block& block = *thread.block;
  if (block.warps[thread.warp()].alive) return;
  if (WarpRequests* open = find_warp(block, thread.warp())) {
    level(*open, 0, 0);
    open->queues.clear();
  }
  if (block.alive == 0) counts().warps.erase(&block);
}

}  // namespace emulator
