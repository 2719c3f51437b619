// Barriers and meetings, as the clocks of blocks.
#include "order.h"

#include <algorithm>

#include "access.h"
#include "releases.h"

namespace emulator {

Running running;

namespace {

Time tick(BlockOrder& order) {
  running.thread = nullptr;
  return ++order.now;
}

// Each of the lanes knows from now on what any of them knew, and what each of them did.
void join(std::vector<Time>& met, std::uint32_t lanes, Time now) {
  if (met.empty()) met.resize(32 * 32);
  Time all[32] = {};
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1)
      for (unsigned other = 0; other < 32; other++) all[other] = std::max(all[other], met[32 * lane + other]);
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) all[lane] = now;
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) std::copy_n(all, 32, met.begin() + 32 * lane);
}

}  // namespace

BlockOrder& order_of(const Block& block) { return *block.order; }

void begin_order(Block& block) {
  if (!block.order) block.order = std::make_shared<BlockOrder>();
  BlockOrder& order = *block.order;
  order.now = order.barrier = 1;
  order.threads.assign(block.threads.size(), 0);
  order.warps.assign(block.warps.size(), 0);
  order.met.resize(block.warps.size());
  for (auto& met : order.met) met.clear();
  begin_releases(order);
  running.thread = nullptr;
}

void look_up_running() {
  const Thread& thread = *current;
  BlockOrder& order = order_of(*thread.block);
  const auto& met = order.met[thread.warp()];
  running.thread = &thread;
  running.order = &order;
  running.barrier = order.barrier;
  running.warp = order.warps[thread.warp()];
  running.met = met.empty() ? nullptr : met.data() + 32 * thread.lane();
  const Time time = std::max({order.threads[thread.rank], running.warp, running.barrier});
  const bool fits = time < Stamp::kLastTime && thread.block->number >> Stamp::kBlockBits == 0;
  running.stamp = fits ? Stamp(thread.block->number, thread.rank, time) : Stamp();
}

void shadow_block_barrier(Block& block) {
  BlockOrder& order = order_of(block);
  const Time before = order.barrier;
  order.barrier = tick(order);
  note_barrier(order, before);
}

// Lanes that the mask names and that have returned count as having met, too.
void shadow_warp_meets(Block& block, unsigned warp, std::uint32_t mask) {
  BlockOrder& order = order_of(block);
  const std::size_t size = std::min<std::size_t>(32, block.threads.size() - 32 * warp);
  const std::uint32_t all = 0xffffffffu >> (32 - size), lanes = mask & all;
  const Time now = tick(order);
  note_meeting(order, warp, lanes);
  if (lanes == all) {
    order.warps[warp] = now;
    return;
  }
  join(order.met[warp], lanes, now);
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) order.threads[32 * warp + lane] = now;
}

}  // namespace emulator
