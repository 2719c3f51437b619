// At a barrier of a cluster or of the grid, each block learns what the others know and have done. All of them
// then share one record of it.
#include "known_blocks.h"

#include <algorithm>
#include <utility>

#include "../report/report.h"
#include "../state/events.h"
#include "../synchronisation/group_barriers.h"
#include "release_log.h"

namespace emulator {
namespace {

// What the blocks knew before. Most often, they share one record already.
std::shared_ptr<KnownBlocks> join_known(const std::vector<Block*>& blocks) {
  const KnownBlocks* last = nullptr;
  auto all = std::make_shared<KnownBlocks>();
  for (const Block* block : blocks) {
    const KnownBlocks* known = clock_of(*block).known.get();
    if (!known || known == last) continue;
    for (const auto& [number, one] : known->blocks) {
      const auto [place, is_new] = all->blocks.emplace(number, one);
      if (!is_new && place->second.before < one.before) place->second = one;
    }
    all->ended.insert(all->ended.end(), known->ended.begin(), known->ended.end());
    last = known;
  }
  return all;
}

// By rank, what a thread did before it arrived is known; empty if all threads arrived and waited at once.
std::vector<Time> arrivals_of(const Block& block, Scope scope, Time now) {
  std::vector<Time> arrivals;
  for (const Thread& thread : block.threads) {
    const bool is_alive = block.warps[thread.warp()].alive >> thread.lane() & 1;
    if (!is_alive || !thread.has_arrived[int(scope)]) continue;
    if (arrivals.empty()) arrivals.assign(block.threads.size(), now);
    arrivals[thread.rank] = thread.arrived_time[int(scope)];
  }
  return arrivals;
}

KnownBlock synchronise_at(Block& block, Scope scope) {
  BlockClock& clock = clock_of(block);
  KnownBlock known{clock.now + 1, arrivals_of(block, scope, clock.now + 1), nullptr, 0};
  if (known.arrived.empty()) {
    synchronise(block);
  } else {
    const Time now = tick(clock);
    for (std::size_t rank = 0; rank < known.arrived.size(); rank++)
      if (known.arrived[rank] == now) clock.threads[rank] = now;
  }
  if (clock.fences && clock.fences->history) {
    known.history = clock.fences->history;
    known.acquisitions = std::uint32_t(known.history->acquisitions.size());
  }
  return known;
}

}  // namespace

std::shared_ptr<const KnownBlocks> known_to_thread() {
  if (!epoch_now()) return nullptr;
  const Thread& thread = *running.thread;
  const ThreadClock now = thread_clock;
  auto known = *now.known ? std::make_shared<KnownBlocks>(**now.known) : std::make_shared<KnownBlocks>();
  KnownBlock own{0, std::vector<Time>(thread.block->threads.size(), now.barrier), nullptr, 0};
  const unsigned first = 32 * thread.warp();
  for (unsigned lane = 0; lane < 32 && first + lane < own.arrived.size(); lane++)
    own.arrived[first + lane] = std::max({now.barrier, now.warp, now.lanes ? now.lanes[lane] : 0});
  own.arrived[thread.rank] = now.block->threads[thread.rank] = tick(*now.block);
  if (now.block->fences && now.block->fences->history) {
    own.history = now.block->fences->history;
    own.acquisitions = std::uint32_t(own.history->acquisitions.size());
  }
  known->blocks.insert_or_assign(std::uint32_t(thread.block->number), std::move(own));
  return known;
}

bool is_behind(const Thread& thread) {
  for (const Scope scope : {Scope::block, Scope::cluster, Scope::grid})
    if (thread.has_arrived[int(scope)] &&
        thread.arrived_phase[int(scope)] != barrier_of(*thread.block, scope).phase)
      return true;
  return false;
}

void share_known(const Block& block) {
  BlockClock& clock = clock_of(block);
  const auto has_waited = [](const Thread& thread) { return !is_behind(thread); };
  if (clock.known != clock.known_before &&
      std::any_of(block.threads.begin(), block.threads.end(), has_waited))
    clock.known_before = clock.known;
}

void on_arrival(Thread& thread, Scope scope) {
  if (!running.observes_accesses) return;
  BlockClock& clock = clock_of(*thread.block);
  thread.arrived_time[int(scope)] = clock.threads[thread.rank] = tick(clock);
}

void on_wait() { thread_clock.thread = nullptr; }

void synchronise(const std::vector<Block*>& blocks, Scope scope) {
  if (!running.observes_accesses) return;
  const auto all = join_known(blocks);
  for (Block* block : blocks)
    all->blocks.insert_or_assign(std::uint32_t(block->number), synchronise_at(*block, scope));
  for (Block* block : blocks) {
    BlockClock& clock = clock_of(*block);
    const bool all_have_waited = all->blocks[std::uint32_t(block->number)].arrived.empty();
    clock.known_before = all_have_waited ? all : clock.known;
    clock.known = all;
  }
}

}  // namespace emulator
