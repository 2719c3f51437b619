// Whether the running thread knows of a step through releases: those that it acquired itself, and those that
// their threads had acquired before.
#include <algorithm>

#include "release_acquire.h"
#include "release_log.h"

namespace emulator {
namespace {

constexpr long kMostSteps =
    100'000'000;                // of all searches of a launch; after that every step counts as known
constexpr int kTriedFirst = 8;  // acquisitions

// Whether a release makes a step of its own block known.
bool covers(const Release& release, Epoch earlier) {
  const LastFence& own = release.fence;
  const Time time = earlier.time();
  if (time < std::max(own.barrier, own.published)) return true;
  if (earlier.same_thread(release.epoch)) return time < own.time;
  // A fence of that thread, then a barrier or a collective. A later fence hides an earlier one:
  // then no race is reported.
  const auto& fences = release.history->fences;
  const bool is_fenced = earlier.rank() < fences.size() && time < fences[earlier.rank()];
  if (is_fenced && time < release.barrier) return true;
  if (!earlier.same_warp(release.epoch)) return false;
  return time < own.warp || (own.has_lane_clocks && time < own.time) ||
         (is_fenced && (own.has_lane_clocks || time < release.warp));
}

// Whether one of the first releases of a location makes a step known.
bool publishes(const Location& location, std::uint32_t releases, Epoch earlier) {
  const auto latest = location.latest.find(earlier.block());
  if (latest == location.latest.end()) return false;
  for (std::int32_t i = latest->second; i != kNoRelease; i = location.releases[std::size_t(i)].previous) {
    release_log().steps++;
    if (std::uint32_t(i) < releases && covers(location.releases[std::size_t(i)], earlier)) return true;
  }
  return false;
}

// All releases that are known in the end: those acquired,
// those that their threads had acquired before, and so on.
class Search {
 public:
  explicit Search(Epoch earlier) : number_(++release_log().searches), earlier_(earlier) {}

  // The first acquisitions of a block, and of the others those that `is_known` picks.
  template <typename Known>
  void follow(BlockHistory& history, std::uint32_t first, Known is_known) {
    if (history.search != number_) history.searched = 0;
    history.search = number_;
    for (; history.searched < first; history.searched++) reach(history.acquisitions[history.searched]);
    for (std::uint32_t i = history.searched; i < history.acquisitions.size(); i++) {
      release_log().steps++;
      if (is_known(history.acquisitions[i], i)) reach(history.acquisitions[i]);
    }
  }

  // What a thread learnt at a barrier of its cluster or the grid.
  void follow(const std::shared_ptr<const KnownBlocks>& known) {
    if (!known || known.get() == last_known_) return;
    last_known_ = known.get();
    is_covered_ |= known->covers(earlier_);
    for (const auto& [number, block] : known->blocks) {
      release_log().steps++;
      if (block.history)
        follow(*block.history, block.acquisitions, [](const Acquisition&, std::uint32_t) { return false; });
    }
  }

  void finish() {
    while (!open_.empty() && release_log().steps < kMostSteps) {
      const Range range = open_.back();
      open_.pop_back();
      for (std::uint32_t i = range.begin; i < range.end; i++) follow(range.location->releases[i]);
    }
  }

  bool finds_it() const {
    return is_covered_ || std::any_of(reached_.begin(), reached_.end(), [&](const Location* location) {
             return publishes(*location, location->found, earlier_);
           });
  }

 private:
  struct Range {
    const Location* location;
    std::uint32_t begin, end;
  };

  void follow(const Release& release) {
    const LastFence& fence = release.fence;
    follow(fence.blocks);
    const Time warp = fence.has_lane_clocks ? fence.time : std::max(release.warp, fence.warp);
    follow(*release.history, std::max(fence.known, fence.published_known),
           [&](const Acquisition& one, std::uint32_t i) {
             return (one.epoch.same_thread(release.epoch) && i < fence.acquired) ||
                    (one.epoch.same_warp(release.epoch) && one.epoch.time() < warp);
           });
  }

  void reach(const Acquisition& acquisition) {
    release_log().steps++;
    Location& location = *acquisition.location;
    if (location.search != number_) {
      location.search = number_;
      location.found = 0;
      reached_.push_back(&location);
    }
    if (acquisition.releases <= location.found) return;
    open_.push_back({&location, location.found, acquisition.releases});
    location.found = acquisition.releases;
  }

  long number_;
  Epoch earlier_;
  bool is_covered_ = false;                  // by a barrier that one of the threads came from
  const KnownBlocks* last_known_ = nullptr;  // of those followed
  std::vector<Location*> reached_;
  std::vector<Range> open_;
};

// Whether the running thread knows of it, itself or by a collective with the lane that made it.
bool is_own_acquisition(const Acquisition& one, std::uint32_t = 0) { return is_after(one.epoch); }

// Most often one of the latest acquisitions suffices.
bool is_in_latest_acquisitions(const BlockHistory& history, Epoch earlier) {
  int tried = 0;
  for (auto i = std::uint32_t(history.acquisitions.size()); i-- > 0 && tried < kTriedFirst;) {
    const Acquisition& one = history.acquisitions[i];
    release_log().steps++;
    if (i >= history.at_barrier && !is_own_acquisition(one)) continue;
    if (publishes(*one.location, one.releases, earlier)) return true;
    tried++;
  }
  return false;
}

}  // namespace

bool is_released(Epoch earlier) {
  ReleaseLog& all = release_log();
  const auto& fences = thread_clock.block->fences;
  BlockHistory* const history = fences ? fences->history : nullptr;
  const auto& known = *thread_clock.known;
  if (all.locations.empty() || (!history && !known)) return false;
  if (all.steps >= kMostSteps) return true;
  if (history && is_in_latest_acquisitions(*history, earlier)) return true;
  Search search(earlier);
  if (history) search.follow(*history, history->at_barrier, is_own_acquisition);
  search.follow(known);
  search.finish();
  return search.finds_it() || all.steps >= kMostSteps;
}

}  // namespace emulator
