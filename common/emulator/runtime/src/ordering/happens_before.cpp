// Advances the clocks of blocks at barriers and collectives.
#include "happens_before.h"

#include <algorithm>

#include "known_blocks.h"
#include "release_acquire.h"

namespace emulator {

EMULATOR_OF_CORE ThreadClock thread_clock = {};

namespace {

// From now on, each of the lanes knows what any of them knew, and what each of them did.
void join(std::vector<Time>& clocks, std::uint32_t lanes, Time now) {
  if (clocks.empty()) clocks.resize(32 * 32);
  Time all[32] = {};
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1)
      for (unsigned other = 0; other < 32; other++)
        all[other] = std::max(all[other], clocks[32 * lane + other]);
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) all[lane] = now;
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) std::copy_n(all, 32, clocks.begin() + 32 * lane);
}

}  // namespace

bool KnownBlocks::covers(Epoch earlier) const {
  for (const BlockRange& range : ended)
    if (earlier.block() >= range.begin && earlier.block() < range.end) return true;
  const auto found = blocks.find(earlier.block());
  if (found == blocks.end()) return false;
  const KnownBlock& block = found->second;
  return earlier.time() < (block.arrived.empty() ? block.before : block.arrived[earlier.rank()]);
}

Time tick(BlockClock& clock) {
  thread_clock.thread = nullptr;
  return ++clock.now;
}

BlockClock& clock_of(const Block& block) { return *block.clock; }

void begin_clock(Block& block) {
  if (!block.clock) block.clock = std::make_shared<BlockClock>();
  BlockClock& clock = *block.clock;
  clock.now = clock.barrier = 1;
  clock.threads.assign(block.threads.size(), 0);
  clock.warps.assign(block.warps.size(), 0);
  clock.lane_clocks.resize(block.warps.size());
  for (auto& clocks : clock.lane_clocks) clocks.clear();
  clock.known = clock.known_before = running.launch->known;
  begin_releases(clock);
  thread_clock.thread = nullptr;
}

void look_up_thread_clock() {
  const Thread& thread = *running.thread;
  BlockClock& clock = clock_of(*thread.block);
  const auto& clocks = clock.lane_clocks[thread.warp()];
  thread_clock.thread = &thread;
  thread_clock.block = &clock;
  thread_clock.known = clock.known && is_behind(thread) ? &clock.known_before : &clock.known;
  thread_clock.barrier = clock.barrier;
  thread_clock.warp = clock.warps[thread.warp()];
  thread_clock.lanes = clocks.empty() ? nullptr : clocks.data() + 32 * thread.lane();
  const Time time = std::max({clock.threads[thread.rank], thread_clock.warp, thread_clock.barrier});
  const bool fits = time < Epoch::kLastTime && thread.block->number >> Epoch::kBlockBits == 0;
  thread_clock.epoch = fits ? Epoch(thread.block->number, thread.rank, time) : Epoch();
}

void synchronise(Block& block) {
  if (!running.observes_accesses) return;
  BlockClock& clock = clock_of(block);
  const Time before = clock.barrier;
  clock.barrier = tick(clock);
  record_barrier(clock, before);
  share_known(block);
}

// Lanes that the mask names and that have returned count as having clocks, too.
void synchronise_lanes(Block& block, unsigned warp, std::uint32_t mask) {
  if (!running.observes_accesses) return;
  BlockClock& clock = clock_of(block);
  const std::size_t size = std::min<std::size_t>(32, block.threads.size() - 32 * warp);
  const std::uint32_t all = 0xffffffffu >> (32 - size), lanes = mask & all;
  const Time now = tick(clock);
  record_warp_sync(clock, warp, lanes);
  if (lanes == all) {
    clock.warps[warp] = now;
    return;
  }
  join(clock.lane_clocks[warp], lanes, now);
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) clock.threads[32 * warp + lane] = now;
}

}  // namespace emulator
