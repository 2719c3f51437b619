
#include <bit>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <string>
#include <utility>

#include "../scheduler/scheduler.h"
#include "../state/events.h"
#include "barrier_check.h"
#include "group_barriers.h"
#include "undefined_values.h"
#include "warp_wide.h"

namespace emulator {
namespace {

void demand_kernel(const char* name) {
  if (!running.thread) throw std::runtime_error(std::string(name) + " was called outside of a kernel");
}

void release_barrier(Block& block) {
  check_barrier(block);
  block.decided = block.votes;
  block.votes = {};
  on_block_barrier(block);
  for (Thread* thread : block.at_barrier)
    if (thread != running.thread) make_ready(thread);
  block.at_barrier.clear();
}

bool is_reduction(Operation operation) {
  return operation >= Operation::reduce_add && operation <= Operation::reduce_xor;
}

std::uint64_t combine(Operation operation, std::uint64_t a, std::uint64_t b) {
  switch (operation) {
    case Operation::reduce_add:
      return a + b;
    case Operation::reduce_min:
      return std::int64_t(a) < std::int64_t(b) ? a : b;
    case Operation::reduce_max:
      return std::int64_t(a) < std::int64_t(b) ? b : a;
    case Operation::reduce_and:
      return a & b;
    case Operation::reduce_or:
      return a | b;
    default:
      return a ^ b;
  }
}

// Combines the values of the lanes of a collective, and gives all of them the result.
void reduce(const Collective& collective, Thread* lanes) {
  const unsigned first = unsigned(std::countr_zero(collective.arrived));
  std::uint64_t total = lanes[first].value;
  for (unsigned lane = first + 1; lane < 32; lane++)
    if (collective.arrived >> lane & 1) total = combine(collective.operation, total, lanes[lane].value);
  for (unsigned lane = 0; lane < 32; lane++)
    if (collective.arrived >> lane & 1) lanes[lane].result = total;
}

// Computes the results of the lanes of a collective.
void exchange(const Collective& collective, Thread* lanes) {
  if (is_warp_wide(collective.operation)) return complete_warp_wide(collective, lanes);
  if (is_reduction(collective.operation)) return reduce(collective, lanes);
  std::uint64_t agreed = 0, first = lanes[std::countr_zero(collective.arrived)].value;
  bool all_same = true;
  for (unsigned lane = 0; lane < 32; lane++)
    if (collective.arrived >> lane & 1) {
      agreed |= std::uint64_t(lanes[lane].value == 1) << lane;
      all_same &= lanes[lane].value == first;
    }
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(collective.arrived >> lane & 1)) continue;
    Thread& thread = lanes[lane];
    switch (collective.operation) {
      case Operation::ballot:
        thread.result = agreed;
        break;
      case Operation::any:
        thread.result = agreed != 0;
        break;
      case Operation::all:
        thread.result = agreed == collective.arrived;
        break;
      case Operation::match_any:
        thread.result = 0;
        for (unsigned other = 0; other < 32; other++)
          if (collective.arrived >> other & 1 && lanes[other].value == thread.value)
            thread.result |= 1u << other;
        break;
      case Operation::match_all:
        thread.result = all_same ? collective.arrived : 0;
        break;
      default:
        thread.result = collective.arrived >> thread.source & 1
                            ? lanes[thread.source].value
                            : std::uint64_t(kUninitialised) << 32 | kUninitialised;
    }
  }
}

// Lets the lanes of a collective continue if all lanes that still can have arrived.
bool complete_collective(Block& block, unsigned warp_number, unsigned which) {
  Warp& warp = block.warps[warp_number];
  const Collective collective = warp.collectives[which];
  if ((collective.mask & warp.alive) != collective.arrived) return false;
  Thread* lanes = block.threads.data() + 32 * warp_number;
  check_collective(block, warp_number, collective);
  exchange(collective, lanes);
  on_warp_synchronised(block, warp_number, collective.mask, collective.arrived);
  for (unsigned lane = 0; lane < 32; lane++)
    if (collective.arrived >> lane & 1 && lanes + lane != running.thread) make_ready(lanes + lane);
  warp.collectives[which] = warp.collectives[--warp.pending];
  return true;
}

}  // namespace

Votes sync_block(Operation operation, int predicate, Position where) {
  demand_kernel(name_of(operation));
  const InRuntime inside;
  Block& block = *running.thread->block;
  arrive_at(operation, 0, where);
  block.votes.all++;
  block.votes.ayes += predicate != 0;
  block.at_barrier.push_back(running.thread);
  if (block.at_barrier.size() == block.alive)
    release_barrier(block);
  else
    wait();
  running.thread->operation = Operation::none;
  return block.decided;
}

std::uint64_t warp_collective(Operation operation, std::uint32_t mask, std::uint64_t value, unsigned source,
                              Position where) {
  demand_kernel(name_of(operation));
  const InRuntime inside;
  Thread& thread = *running.thread;
  if (!(mask >> thread.lane() & 1)) refuse_mask(operation, mask, where);
  arrive_at(operation, mask, where);
  thread.value = value;
  thread.source = source;

  Warp& warp = thread.block->warps[thread.warp()];
  unsigned which = 0;
  while (which < warp.pending &&
         (warp.collectives[which].mask != mask || warp.collectives[which].operation != operation))
    which++;
  if (which == warp.pending) warp.collectives[warp.pending++] = {operation, mask, 0};
  warp.collectives[which].arrived |= 1u << thread.lane();
  if (!complete_collective(*thread.block, thread.warp(), which)) wait();
  thread.operation = Operation::none;
  return thread.result;
}

void drop_from_barriers(Thread& thread) {
  on_thread_ends(thread);
  if (has_store_to_check) check_store();
  Block& block = *thread.block;
  Warp& warp = block.warps[thread.warp()];
  block.alive--;
  block.returned += !thread.was_ended;
  warp.alive &= ~(1u << thread.lane());
  on_thread_ended(thread);
  drop_from_group_barriers(thread);
  for (unsigned which = warp.pending; which-- > 0;)
    if (warp.collectives[which].arrived) complete_collective(block, thread.warp(), which);
  if (block.alive > 0 && block.at_barrier.size() == block.alive) release_barrier(block);
}

std::uint32_t active_lanes(Position where) {
  demand_kernel("__activemask");
  const InRuntime inside;
  arrive_at(Operation::activemask, 0, where);
  wait_at_activemask();
  running.thread->operation = Operation::none;
  return std::uint32_t(running.thread->result);
}

namespace {

// Whether a lane of the same warp waits at an earlier call of the same function: it may come to this one,
// too.
bool has_lane_behind(const Thread& thread) {
  const Thread* lanes = &thread - thread.lane();
  const std::uint32_t alive = thread.block->warps[thread.warp()].alive;
  for (unsigned lane = 0; lane < 32; lane++) {
    const Thread& other = lanes[lane];
    if (!(alive >> lane & 1) || other.operation != Operation::activemask) continue;
    const bool is_same_function =
        std::strcmp(other.where.function_name(), thread.where.function_name()) == 0 &&
        std::strcmp(other.where.file_name(), thread.where.file_name()) == 0;
    if (is_same_function && std::pair(other.where.line(), other.where.column()) <
                                std::pair(thread.where.line(), thread.where.column()))
      return true;
  }
  return false;
}

}  // namespace

void release_activemask(std::vector<Thread*>& threads) {
  std::vector<Thread*> released, waiting;
  for (Thread* thread : threads) (has_lane_behind(*thread) ? waiting : released).push_back(thread);
  for (Thread* thread : released) {
    const Thread* lanes = thread - thread->lane();
    thread->result = 0;
    for (unsigned lane = 0; lane < 32; lane++)
      if (thread->block->warps[thread->warp()].alive >> lane & 1 &&
          lanes[lane].operation == Operation::activemask && is_same(lanes[lane].where, thread->where))
        thread->result |= 1u << lane;
    make_ready(thread);
  }
  threads = std::move(waiting);
}

void fence() {
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (running.thread) on_fence(*running.thread);
  count_poll();
}

unsigned current_lane() {
  demand_kernel("a shuffle");
  return running.thread->lane();
}

const char* name_of(Operation operation) {
  static constexpr const char* names[] = {"nothing",
                                          "a turn",
                                          "__activemask",
                                          "__syncthreads",
                                          "__syncthreads_count",
                                          "__syncthreads_and",
                                          "__syncthreads_or",
                                          "__syncwarp",
                                          "__shfl_sync",
                                          "__shfl_up_sync",
                                          "__shfl_down_sync",
                                          "__shfl_xor_sync",
                                          "__ballot_sync",
                                          "__any_sync",
                                          "__all_sync",
                                          "__match_any_sync",
                                          "__match_all_sync",
                                          "__reduce_add_sync",
                                          "__reduce_min_sync",
                                          "__reduce_max_sync",
                                          "__reduce_and_sync",
                                          "__reduce_or_sync",
                                          "__reduce_xor_sync",
                                          "thread_block::barrier_wait",
                                          "cluster_group::barrier_wait",
                                          "grid_group::barrier_wait",
                                          "cluster_group::sync",
                                          "grid_group::sync",
                                          "barrier::wait",
                                          "bar.sync",
                                          "thread_block_tile::sync",
                                          "mma_sync",
                                          "load_matrix_sync",
                                          "store_matrix_sync",
                                          "mma",
                                          "ldmatrix",
                                          "stmatrix",
                                          "bmma_sync"};
  static_assert(std::size(names) == std::size_t(Operation::bmma_sync) + 1);
  return names[static_cast<int>(operation)];
}

}  // namespace emulator
