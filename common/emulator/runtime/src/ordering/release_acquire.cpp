#include "release_acquire.h"

#include <algorithm>

#include "../memory/access.h"
#include "../report/report.h"
#include "../state/events.h"
#include "release_log.h"

namespace emulator {
namespace {

// Of a block: made at its first fence or acquisition.
BlockFences& fences_of(BlockClock& clock) {
  if (!clock.fences) clock.fences = std::make_shared<BlockFences>();
  BlockFences& fences = *clock.fences;
  if (!fences.history) {
    fences.history = release_log().histories.emplace_back(std::make_unique<BlockHistory>()).get();
    fences.by_rank.assign(clock.threads.size(), {});
  }
  return fences;
}

std::uint64_t key_of(const Location& location, unsigned rank) {
  return std::uint64_t(reinterpret_cast<std::uintptr_t>(&location)) << Epoch::kRankBits | rank;
}

// Shared memory of one block may lie where that of another lay before.
std::uint64_t key_of(const std::byte* address, const Block* owner) {
  const auto word = std::uint64_t(reinterpret_cast<std::uintptr_t>(address)) / 4;
  return owner ? (owner->number + 1) << 40 ^ word : word;
}

void release(std::uint64_t key) {
  const auto& fences = thread_clock.block->fences;
  if (!fences || !fences->has_fence) return;
  Location& location = release_log().locations[key];
  Epoch& latest = fences->released[key_of(location, thread_clock.epoch.rank())];
  if (latest == thread_clock.epoch) return;  // it has acquired nothing since
  latest = thread_clock.epoch;
  auto& of_block = location.latest.try_emplace(thread_clock.epoch.block(), kNoRelease).first->second;
  location.releases.push_back({fences->history, thread_clock.epoch,
                               fences->by_rank[thread_clock.epoch.rank()], thread_clock.barrier,
                               thread_clock.warp, of_block});
  of_block = std::int32_t(location.releases.size()) - 1;
}

void acquire(std::uint64_t key) {
  const auto found = release_log().locations.find(key);
  if (found == release_log().locations.end()) return;
  Location& location = found->second;
  BlockFences& fences = fences_of(*thread_clock.block);
  const auto releases = std::uint32_t(location.releases.size());
  std::uint32_t& known = fences.known[key_of(location, thread_clock.epoch.rank())];
  if (known == releases) return;
  known = releases;
  fences.history->acquisitions.push_back({&location, releases, thread_clock.epoch});
}

}  // namespace

ReleaseLog& release_log() {
  static auto& all = *new ReleaseLog;
  return all;
}

void forget_releases() {
  release_log().locations.clear();
  release_log().histories.clear();
  release_log().searches = release_log().steps = 0;
}

void begin_releases(BlockClock& clock) {
  if (!clock.fences || !clock.fences->history) return;
  BlockFences& fences = *clock.fences;
  fences.history = nullptr;
  fences.has_fence = false;
  fences.last_fence = 0;
  fences.known.clear();
  fences.released.clear();
}

void on_fence(const Thread& thread) {
  if (!running.observes_accesses) return;
  const InRuntime inside;
  if (!is_on(Check::races) || !epoch_now()) return;
  BlockClock& clock = *thread_clock.block;
  BlockFences& fences = fences_of(clock);
  BlockHistory& history = *fences.history;
  LastFence& fence = fences.by_rank[thread.rank];
  fence.barrier = thread_clock.barrier;
  fence.warp = thread_clock.warp;
  fence.has_lane_clocks = thread_clock.lanes != nullptr;
  fence.known = history.at_barrier;
  fence.blocks = *thread_clock.known;
  fence.acquired = std::uint32_t(history.acquisitions.size());
  fence.time = clock.threads[thread.rank] = fences.last_fence = ++clock.now;
  fences.has_fence = true;
  if (history.fences.size() <= thread.rank) history.fences.resize(thread.rank + 1);
  history.fences[thread.rank] = fence.time;
  thread_clock.thread = nullptr;
}

void record_barrier(BlockClock& clock, Time before) {
  if (!clock.fences || !clock.fences->history) return;
  BlockFences& fences = *clock.fences;
  BlockHistory& history = *fences.history;
  history.at_barrier = std::uint32_t(history.acquisitions.size());
  if (fences.last_fence < before) return;
  for (LastFence& fence : fences.by_rank) {
    fence.published = before;
    fence.published_known = history.at_barrier;
  }
}

void record_warp_sync(BlockClock& clock, unsigned warp, std::uint32_t lanes) {
  if (!clock.fences || !clock.fences->has_fence) return;
  auto& fences = clock.fences->by_rank;
  Time published = 0;
  std::uint32_t known = 0;
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) {
      const LastFence& fence = fences[32 * warp + lane];
      published = std::max({published, fence.published, fence.barrier});
      known = std::max({known, fence.published_known, fence.known});
    }
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes >> lane & 1) {
      fences[32 * warp + lane].published = published;
      fences[32 * warp + lane].published_known = known;
    }
}

void record_synchronising(const Access& access) {
  const bool writes = access.is_write, reads = !access.is_write || is_atomic(access.kind);
  for (std::size_t offset = 0; offset < access.size; offset += 4) {
    const std::uint64_t key = key_of(access.address + offset, access.arena ? access.owner : nullptr);
    if (writes) release(key);
    if (reads && !release_log().locations.empty()) acquire(key);
  }
}

namespace {

void record_at_barrier(void* address, std::size_t size, bool is_write) {
  if (!is_on(Check::races) || !epoch_now()) return;
  record_synchronising({static_cast<std::byte*>(address), size, is_write, AccessKind::is_volatile, nullptr,
                        nullptr, nullptr, nullptr});
}

}  // namespace

void on_release(void* address, std::size_t size) { record_at_barrier(address, size, true); }

void on_acquire(void* address, std::size_t size) { record_at_barrier(address, size, false); }

}  // namespace emulator
