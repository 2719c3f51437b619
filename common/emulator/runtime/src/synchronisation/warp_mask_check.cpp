// Checks for masks that name lanes which never arrive, and for shuffles from lanes outside of the mask.
#include <bit>
#include <string>

#include "../report/report.h"
#include "../scheduler/failure.h"
#include "../scheduler/scheduler.h"
#include "barrier_check.h"
#include "undefined_values.h"
#include "warp_wide.h"

namespace emulator {
namespace {

bool is_shuffle(Operation operation) {
  return operation >= Operation::shfl && operation <= Operation::shfl_xor;
}

// The lanes that a check ended. They have been reported already, so their absence is not reported again.
std::uint32_t ended_lanes(const Block& block, unsigned warp) {
  std::uint32_t ended = 0;
  for (std::uint32_t left = existing_lanes(block, warp) & ~block.warps[warp].alive; left; left &= left - 1) {
    const unsigned lane = unsigned(std::countr_zero(left));
    if (block.threads[32 * warp + lane].was_ended) ended |= 1u << lane;
  }
  return ended;
}

void add_returned_lanes(const Thread& caller, std::uint32_t gone) {
  const Cause cause = cause_at("the mask names lanes that returned", caller.where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  add(cause,
      {true, std::string("the mask of ") + name_of(caller.operation) + " names lanes that have returned",
       at(caller.where),
       where_in(*caller.block, caller.warp()) + ": the mask " + in_hex(caller.mask) + " names " +
           lanes_text(gone) +
           ";\nGPUs since Volta continue without them, and values read from these lanes are undefined"});
}

// A GPU may fail to exchange values between lanes at different calls: each call may see only its own lanes.
void add_different_calls(const Thread* lanes, std::uint32_t arrived) {
  const Thread& first = lanes[std::countr_zero(arrived)];
  const Cause cause = cause_at("different calls", first.where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  const std::string name = name_of(first.operation);
  std::string detail = where_in(*first.block, first.warp()) + ":\n";
  while (arrived) {
    const Position where = lanes[std::countr_zero(arrived)].where;
    std::uint32_t here = 0;
    for (std::uint32_t left = arrived; left; left &= left - 1)
      if (is_same(lanes[std::countr_zero(left)].where, where)) here |= left & -left;
    detail += lanes_text(here) + " in " + at(where) + "\n";
    arrived &= ~here;
  }
  add(cause, {false, "lanes of one warp meet at different calls of " + name, at(first.where),
              detail + "lanes that exchange values must reach the same call"});
}

bool are_at_one_call(const Thread* lanes, std::uint32_t arrived) {
  const Position where = lanes[std::countr_zero(arrived)].where;
  for (std::uint32_t left = arrived; left; left &= left - 1)
    if (!is_same(lanes[std::countr_zero(left)].where, where)) return false;
  return true;
}

// Sums and scans may read past the end of a mask without harm if they discard the value. The next shuffle
// shows whether they did: at the same call, the lane passes the same value as before; at another call, the
// value is neither the undefined one nor a sum with it.
bool went_on_with(const Stray& stray, const Thread& thread) {
  if (stray.is_halving) return false;
  if (is_same(stray.where, thread.where)) return thread.value != stray.given;
  return is_made_of(stray, thread.value, sizeof(std::uint32_t));
}

void check_source(Thread& thread, std::uint32_t arrived, std::uint32_t ended) {
  if (thread.stray.lane != Stray::kNoLane && went_on_with(thread.stray, thread))
    add_undefined(thread, thread.stray);
  thread.stray.lane = Stray::kNoLane;
  if ((arrived | ended) >> thread.source & 1) return;
  const int lane = int(thread.lane()), source = int(thread.source), first = std::countr_zero(arrived),
            last = 31 - std::countl_zero(arrived);
  const bool is_up = thread.operation == Operation::shfl_up && source < first,
             is_down = thread.operation == Operation::shfl_down && source > last;
  const bool is_halving = is_down && lane - first >= source - lane;
  const std::uint32_t gone = thread.mask & ~thread.block->warps[thread.warp()].alive;
  const Stray stray{thread.source, thread.operation, thread.mask, gone,
                    thread.where,  thread.value,     is_halving};
  if (is_up || is_down)
    thread.stray = stray;
  else
    add_undefined(thread, stray);
}

}  // namespace

void check_collective(Block& block, unsigned warp, const Collective& collective) {
  if (!is_on(Check::barriers)) return;
  const bool exchanges = collective.operation != Operation::syncwarp;
  Thread* lanes = block.threads.data() + 32 * warp;
  if (exchanges && !are_at_one_call(lanes, collective.arrived))
    add_different_calls(lanes, collective.arrived);
  if (collective.arrived == 0xffffffffu || is_warp_wide(collective.operation)) return;

  const std::uint32_t ended = ended_lanes(block, warp);
  if (is_shuffle(collective.operation))
    for (std::uint32_t left = collective.arrived; left; left &= left - 1)
      check_source(lanes[std::countr_zero(left)], collective.arrived, ended);
  // A plain __syncwarp() means the remaining lanes, and a mask may name lanes that never existed.
  const std::uint32_t returned = collective.mask & ~collective.arrived & ~ended & existing_lanes(block, warp);
  if (returned && (exchanges || collective.mask != 0xffffffffu))
    add_returned_lanes(lanes[std::countr_zero(collective.arrived)], returned);
}

void refuse_mask(Operation operation, std::uint32_t mask, const Position& where) {
  const char* name = name_of(operation);
  const unsigned lane = running.thread->lane();
  if (!is_on(Check::barriers))
    abandon("calls %s in %s with mask %s, which does not name its own lane %u", name, at(where).c_str(),
            in_hex(mask).c_str(), lane);
  const Cause cause = cause_at("mask without the caller", where);
  if (is_new(cause))
    add(cause,
        {false,
         "lane " + std::to_string(lane) + " calls " + name + " with a mask that does not name this lane",
         at(where), "the mask is " + in_hex(mask) + ", " + (mask ? lanes_text(mask) : "no lane at all")});
  set_error(cudaErrorIllegalInstruction);
  end_thread();
}

std::uint32_t old_mask(const char* function, Position where) {
  const Cause cause = cause_at("without a mask", where);
  {
    const InRuntime inside;
    const AboutThread none(nullptr);
    if (is_on(Check::barriers) && is_new(cause))
      add(cause, {true,
                  std::string(function) + " has no mask, and devices since Volta do not have it: use " +
                      function + "_sync",
                  line_at(where), ""});
  }
  return active_lanes(where);
}

}  // namespace emulator
