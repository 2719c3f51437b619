// Barriers of a block, and meetings of a warp's lanes.
#include <bit>
#include <stdexcept>
#include <string>

#include "access.h"
#include "barriers.h"
#include "counts.h"
#include "launch_state.h"

namespace emulator {
namespace {

void demand_kernel(const char* name) {
  if (!current) throw std::runtime_error(std::string(name) + " was called outside of a kernel");
}

void release_barrier(Block& block) {
  check_barrier(block);
  block.decided = block.votes;
  block.votes = {};
  shadow_block_barrier(block);
  if (counting) count_block_barrier(block);
  for (Thread* thread : block.at_barrier)
    if (thread != current) make_ready(thread);
  block.at_barrier.clear();
}

// The values that the lanes of a meeting leave with.
void exchange(const Meeting& meeting, Thread* lanes) {
  std::uint64_t agreed = 0, first = lanes[std::countr_zero(meeting.arrived)].value;
  bool all_same = true;
  for (unsigned lane = 0; lane < 32; lane++)
    if (meeting.arrived >> lane & 1) {
      agreed |= std::uint64_t(lanes[lane].value == 1) << lane;
      all_same &= lanes[lane].value == first;
    }
  for (unsigned lane = 0; lane < 32; lane++) {
    if (!(meeting.arrived >> lane & 1)) continue;
    Thread& thread = lanes[lane];
    switch (meeting.operation) {
      case Operation::ballot:
        thread.result = agreed;
        break;
      case Operation::any:
        thread.result = agreed != 0;
        break;
      case Operation::all:
        thread.result = agreed == meeting.arrived;
        break;
      case Operation::match_any:
        thread.result = 0;
        for (unsigned other = 0; other < 32; other++)
          if (meeting.arrived >> other & 1 && lanes[other].value == thread.value)
            thread.result |= 1u << other;
        break;
      case Operation::match_all:
        thread.result = all_same ? meeting.arrived : 0;
        break;
      default:
        thread.result = meeting.arrived >> thread.source & 1 ? lanes[thread.source].value
                                                             : std::uint64_t(kUnwritten) << 32 | kUnwritten;
    }
  }
}

// Lets the lanes of a meeting go if all are there that still can be.
bool end_meeting(Block& block, unsigned warp_number, unsigned which) {
  Warp& warp = block.warps[warp_number];
  const Meeting meeting = warp.meetings[which];
  if ((meeting.mask & warp.alive) != meeting.arrived) return false;
  Thread* lanes = block.threads.data() + 32 * warp_number;
  check_meeting(block, warp_number, meeting);
  exchange(meeting, lanes);
  shadow_warp_meets(block, warp_number, meeting.mask);
  if (counting) count_warp_meets(block, warp_number, meeting.arrived);
  for (unsigned lane = 0; lane < 32; lane++)
    if (meeting.arrived >> lane & 1 && lanes + lane != current) make_ready(lanes + lane);
  warp.meetings[which] = warp.meetings[--warp.open];
  return true;
}

}  // namespace

Votes meet_block(Operation operation, int predicate, Position where) {
  demand_kernel(name_of(operation));
  const InRuntime inside;
  Block& block = *current->block;
  come_to(operation, 0, where);
  block.votes.all++;
  block.votes.ayes += predicate != 0;
  block.at_barrier.push_back(current);
  if (block.at_barrier.size() == block.alive)
    release_barrier(block);
  else
    wait();
  current->operation = Operation::none;
  return block.decided;
}

std::uint64_t meet_warp(Operation operation, std::uint32_t mask, std::uint64_t value, unsigned source,
                        Position where) {
  demand_kernel(name_of(operation));
  const InRuntime inside;
  Thread& thread = *current;
  if (!(mask >> thread.lane() & 1)) refuse_mask(operation, mask, where);
  come_to(operation, mask, where);
  thread.value = value;
  thread.source = source;

  Warp& warp = thread.block->warps[thread.warp()];
  unsigned which = 0;
  while (which < warp.open &&
         (warp.meetings[which].mask != mask || warp.meetings[which].operation != operation))
    which++;
  if (which == warp.open) warp.meetings[warp.open++] = {operation, mask, 0};
  warp.meetings[which].arrived |= 1u << thread.lane();
  if (!end_meeting(*thread.block, thread.warp(), which)) wait();
  thread.operation = Operation::none;
  return thread.result;
}

void leave_block(Thread& thread) {
  shadow_thread_ends(thread);
  Block& block = *thread.block;
  Warp& warp = block.warps[thread.warp()];
  block.alive--;
  block.returned += !thread.was_ended;
  warp.alive &= ~(1u << thread.lane());
  if (counting) count_thread_ends(thread);
  for (unsigned which = warp.open; which-- > 0;)
    if (warp.meetings[which].arrived) end_meeting(block, thread.warp(), which);
  if (block.alive > 0 && block.at_barrier.size() == block.alive) release_barrier(block);
}

std::uint32_t active_lanes(Position where) {
  demand_kernel("__activemask");
  const InRuntime inside;
  come_to(Operation::activemask, 0, where);
  state->gathering.push_back(current);
  wait();
  current->operation = Operation::none;
  return std::uint32_t(current->result);
}

void release_gathering() {
  for (Thread* thread : state->gathering) {
    const Thread* lanes = thread - thread->lane();
    thread->result = 0;
    for (unsigned lane = 0; lane < 32; lane++)
      if (thread->block->warps[thread->warp()].alive >> lane & 1 &&
          lanes[lane].operation == Operation::activemask && is_same(lanes[lane].where, thread->where))
        thread->result |= 1u << lane;
    make_ready(thread);
  }
  state->gathering.clear();
}

unsigned current_lane() {
  demand_kernel("a shuffle");
  return current->lane();
}

const char* name_of(Operation operation) {
  static constexpr const char* names[] = {
      "nothing",           "a turn",           "__activemask",  "__syncthreads", "__syncthreads_count",
      "__syncthreads_and", "__syncthreads_or", "__syncwarp",    "__shfl_sync",   "__shfl_up_sync",
      "__shfl_down_sync",  "__shfl_xor_sync",  "__ballot_sync", "__any_sync",    "__all_sync",
      "__match_any_sync",  "__match_all_sync"};
  return names[static_cast<int>(operation)];
}

}  // namespace emulator
