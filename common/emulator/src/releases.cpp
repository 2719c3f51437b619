#include "releases.h"

#include <algorithm>
#include <unordered_map>

#include "access.h"
#include "report.h"

namespace emulator {
namespace {

constexpr std::int32_t kNone = -1;
constexpr long kMostSteps = 100'000'000;  // of all searches of a launch; after that nothing is doubted

struct Location;

// An atomic or volatile read: from then on its thread knows the releases that the location had.
struct Acquisition {
  Location* location;
  std::uint32_t releases;
  Stamp stamp;
};

// What remains of a block for those who ask later.
struct History {
  std::vector<Time> fences;  // by rank: its latest
  std::vector<Acquisition> acquisitions;
  std::uint32_t at_barrier = 0;  // of these, made before the last barrier
  long search = 0;               // the last one that came here, and
  std::uint32_t searched = 0;    // how many of the acquisitions it has followed
};

// A thread's latest fence: what was done and known then, and will be known to whoever reads what it writes.
struct LastFence {
  Time time = 0;               // its own steps before this
  Time barrier = 0, warp = 0;  // those of its block, and of its warp, before these
  bool has_met = false;        // parts of its warp have met: it may know more of them
  std::uint32_t known = 0;     // of its block's acquisitions those before this
  std::uint32_t acquired = 0;  // of its own those before this
  // By fences of other threads, and then a barrier or a meeting with them:
  Time published = 0;  // steps of the block before this
  std::uint32_t published_known = 0;
};

// An atomic or volatile write after a fence.
struct Release {
  History* history;  // of the block
  Stamp stamp;
  LastFence fence;
  Time barrier, warp;     // the last ones before it: what others fenced before these counts, too
  std::int32_t previous;  // release of the same block at the same location
};

struct Location {
  std::vector<Release> releases;
  std::unordered_map<std::uint32_t, std::int32_t> latest;  // by block
  long search = 0;                                         // the last one that came here, and
  std::uint32_t found = 0;                                 // how many of the releases it found known
};

struct ReleaseNotes {
  std::unordered_map<std::uint64_t, Location> locations;  // by word; their addresses stay
  std::vector<std::unique_ptr<History>> histories;
  long searches = 0, steps = 0;
};
ReleaseNotes& release_notes() {
  static auto& all = *new ReleaseNotes;
  return all;
}

}  // namespace

// A block that runs.
struct Publisher {
  History* history = nullptr;
  std::vector<LastFence> fences;  // by rank
  bool has_fence = false;
  Time last_fence = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // releases, by location and rank
  std::unordered_map<std::uint64_t, Stamp> released;       // the latest, by location and rank
};

namespace {

// The block's notes, from its first fence or acquisition on.
Publisher& publisher_of(BlockOrder& order) {
  if (!order.publisher) order.publisher = std::make_shared<Publisher>();
  Publisher& publisher = *order.publisher;
  if (!publisher.history) {
    publisher.history = release_notes().histories.emplace_back(std::make_unique<History>()).get();
    publisher.fences.assign(order.threads.size(), {});
  }
  return publisher;
}

std::uint64_t key_of(const Location& location, unsigned rank) {
  return std::uint64_t(reinterpret_cast<std::uintptr_t>(&location)) << Stamp::kRankBits | rank;
}

// Shared memory of one block may lie where that of another lay before.
std::uint64_t key_of(const std::byte* address, bool is_shared) {
  const auto word = std::uint64_t(reinterpret_cast<std::uintptr_t>(address)) / 4;
  return is_shared ? std::uint64_t(running.stamp.block() + 1) << 40 ^ word : word;
}

// Whether a release tells of a step of its own block.
bool covers(const Release& release, Stamp earlier) {
  const LastFence& own = release.fence;
  const Time time = earlier.time();
  if (time < std::max(own.barrier, own.published)) return true;
  if (earlier.same_thread(release.stamp)) return time < own.time;
  // A fence of that thread, then a barrier or a meeting. A later fence hides an earlier one, and then the
  // kernel has the benefit of the doubt.
  const auto& fences = release.history->fences;
  const bool is_fenced = earlier.rank() < fences.size() && time < fences[earlier.rank()];
  if (is_fenced && time < release.barrier) return true;
  if (!earlier.same_warp(release.stamp)) return false;
  return time < own.warp || (own.has_met && time < own.time) ||
         (is_fenced && (own.has_met || time < release.warp));
}

// Whether one of the first releases of a location tells of it.
bool tells(const Location& location, std::uint32_t releases, Stamp earlier) {
  const auto latest = location.latest.find(earlier.block());
  if (latest == location.latest.end()) return false;
  for (std::int32_t i = latest->second; i != kNone; i = location.releases[std::size_t(i)].previous) {
    release_notes().steps++;
    if (std::uint32_t(i) < releases && covers(location.releases[std::size_t(i)], earlier)) return true;
  }
  return false;
}

// All releases that are known in the end: those acquired, those acquired by whoever made these, and so on.
class Search {
 public:
  Search() : number_(++release_notes().searches) {}

  // The first acquisitions of a block, and of the others those that `is_known` picks.
  template <typename Known>
  void follow(History& history, std::uint32_t first, Known is_known) {
    if (history.search != number_) history.searched = 0;
    history.search = number_;
    for (; history.searched < first; history.searched++) reach(history.acquisitions[history.searched]);
    for (std::uint32_t i = history.searched; i < history.acquisitions.size(); i++) {
      release_notes().steps++;
      if (is_known(history.acquisitions[i], i)) reach(history.acquisitions[i]);
    }
  }

  void finish() {
    while (!open_.empty() && release_notes().steps < kMostSteps) {
      const Range range = open_.back();
      open_.pop_back();
      for (std::uint32_t i = range.begin; i < range.end; i++) follow(range.location->releases[i]);
    }
  }

  bool finds(Stamp earlier) const {
    return std::any_of(reached_.begin(), reached_.end(),
                       [&](const Location* location) { return tells(*location, location->found, earlier); });
  }

 private:
  struct Range {
    const Location* location;
    std::uint32_t begin, end;
  };

  void follow(const Release& release) {
    const LastFence& fence = release.fence;
    const Time warp = fence.has_met ? fence.time : std::max(release.warp, fence.warp);
    follow(*release.history, std::max(fence.known, fence.published_known),
           [&](const Acquisition& one, std::uint32_t i) {
             return (one.stamp.same_thread(release.stamp) && i < fence.acquired) ||
                    (one.stamp.same_warp(release.stamp) && one.stamp.time() < warp);
           });
  }

  void reach(const Acquisition& acquisition) {
    release_notes().steps++;
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
  std::vector<Location*> reached_;
  std::vector<Range> open_;
};

void release(std::uint64_t key) {
  const auto& publisher = running.order->publisher;
  if (!publisher || !publisher->has_fence) return;
  Location& location = release_notes().locations[key];
  Stamp& latest = publisher->released[key_of(location, running.stamp.rank())];
  if (latest == running.stamp) return;  // it has learnt nothing since
  latest = running.stamp;
  auto& of_block = location.latest.try_emplace(running.stamp.block(), kNone).first->second;
  location.releases.push_back({publisher->history, running.stamp, publisher->fences[running.stamp.rank()],
                               running.barrier, running.warp, of_block});
  of_block = std::int32_t(location.releases.size()) - 1;
}

void acquire(std::uint64_t key) {
  const auto found = release_notes().locations.find(key);
  if (found == release_notes().locations.end()) return;
  Location& location = found->second;
  Publisher& publisher = publisher_of(*running.order);
  const auto releases = std::uint32_t(location.releases.size());
  std::uint32_t& known = publisher.known[key_of(location, running.stamp.rank())];
  if (known == releases) return;
  known = releases;
  publisher.history->acquisitions.push_back({&location, releases, running.stamp});
}

}  // namespace

void forget_releases() {
  release_notes().locations.clear();
  release_notes().histories.clear();
  release_notes().searches = release_notes().steps = 0;
}

void begin_releases(BlockOrder& order) {
  if (!order.publisher || !order.publisher->history) return;
  Publisher& publisher = *order.publisher;
  publisher.history = nullptr;
  publisher.has_fence = false;
  publisher.last_fence = 0;
  publisher.known.clear();
  publisher.released.clear();
}

void shadow_fence(const Thread& thread) {
  const InRuntime inside;
  if (!is_on(Check::races) || !stamp_now()) return;
  BlockOrder& order = *running.order;
  Publisher& publisher = publisher_of(order);
  History& history = *publisher.history;
  LastFence& fence = publisher.fences[thread.rank];
  fence.barrier = running.barrier;
  fence.warp = running.warp;
  fence.has_met = running.met != nullptr;
  fence.known = history.at_barrier;
  fence.acquired = std::uint32_t(history.acquisitions.size());
  fence.time = order.threads[thread.rank] = publisher.last_fence = ++order.now;
  publisher.has_fence = true;
  if (history.fences.size() <= thread.rank) history.fences.resize(thread.rank + 1);
  history.fences[thread.rank] = fence.time;
  running.thread = nullptr;
}

void note_barrier(BlockOrder& order, Time before) {
  if (!order.publisher || !order.publisher->history) return;
  Publisher& publisher = *order.publisher;
  History& history = *publisher.history;
  history.at_barrier = std::uint32_t(history.acquisitions.size());
  if (publisher.last_fence < before) return;
  for (LastFence& fence : publisher.fences) {
    fence.published = before;
    fence.published_known = history.at_barrier;
  }
}

void note_meeting(BlockOrder& order, unsigned warp, std::uint32_t lanes) {
  if (!order.publisher || !order.publisher->has_fence) return;
  auto& fences = order.publisher->fences;
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

void note_synchronising(const Access& access) {
  const bool writes = access.is_write, reads = !access.is_write || is_atomic(access.kind);
  for (std::size_t offset = 0; offset < access.size; offset += 4) {
    const std::uint64_t key = key_of(access.address + offset, access.arena != nullptr);
    if (writes) release(key);
    if (reads && !release_notes().locations.empty()) acquire(key);
  }
}

bool is_released(Stamp earlier) {
  ReleaseNotes& all = release_notes();
  if (all.locations.empty() || !running.order->publisher || !running.order->publisher->history) return false;
  if (all.steps >= kMostSteps) return true;

  // Most often one of the latest acquisitions tells of it.
  constexpr int kDirect = 8;
  History& history = *running.order->publisher->history;
  const auto is_known = [](const Acquisition& one, std::uint32_t = 0) { return is_after(one.stamp); };
  int tried = 0;
  for (auto i = std::uint32_t(history.acquisitions.size()); i-- > 0 && tried < kDirect;) {
    const Acquisition& one = history.acquisitions[i];
    all.steps++;
    if (i >= history.at_barrier && !is_known(one)) continue;
    if (tells(*one.location, one.releases, earlier)) return true;
    tried++;
  }
  Search search;
  search.follow(history, history.at_barrier, is_known);
  search.finish();
  return search.finds(earlier) || all.steps >= kMostSteps;
}

}  // namespace emulator
