#include "warp_wide.h"

#include <bit>
#include <string>

#include "barrier_check.h"
#include "emulator/warp_wide.h"

namespace emulator {
namespace {

constexpr std::uint32_t kAllLanes = 0xffffffff;

struct LaneWork {
  void* own;
  WarpComputation compute;
};

// Whether a check ended one of the missing lanes. It has been reported already, so its absence is not
// reported.
bool has_ended_lane(const Block& block, unsigned warp) {
  for (const Thread& thread : block.threads)
    if (thread.warp() == warp && thread.was_ended) return true;
  return false;
}

void add_missing_lanes(const Collective& collective, const Thread& caller) {
  if (!is_on(Check::barriers) || has_ended_lane(*caller.block, caller.warp())) return;
  const Cause cause = cause_at("missing lanes", caller.where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  add(cause, {false,
              std::string("only some lanes of a warp call ") + name_of(collective.operation) +
                  ", which needs all 32",
              at(caller.where),
              where_in(*caller.block, caller.warp()) + ": " + lanes_text(~collective.arrived) +
                  " returned, or never existed; the results of the other lanes are undefined"});
}

}  // namespace

void complete_warp_wide(const Collective& collective, Thread* lanes) {
  const Thread& caller = lanes[std::countr_zero(collective.arrived)];
  if (collective.arrived != kAllLanes) return add_missing_lanes(collective, caller);
  void* each[kWarpLanes];
  for (unsigned lane = 0; lane < kWarpLanes; lane++) {
    const auto& work = *reinterpret_cast<const LaneWork*>(lanes[lane].value);
    if (work.compute != reinterpret_cast<const LaneWork*>(caller.value)->compute) return;  // different calls
    each[lane] = work.own;
  }
  if (WarpComputation compute = reinterpret_cast<const LaneWork*>(caller.value)->compute) compute(each);
}

void compute_in_warp(Operation operation, void* own, WarpComputation compute, Position where) {
  LaneWork work{own, compute};
  warp_collective(operation, kAllLanes, reinterpret_cast<std::uint64_t>(&work), 0, where);
}

}  // namespace emulator
