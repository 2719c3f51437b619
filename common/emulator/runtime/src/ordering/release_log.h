// What release_acquire.cpp records of fences, atomics and volatile accesses, and release_search.cpp reads.
#pragma once

#include <memory>
#include <unordered_map>
#include <vector>

#include "happens_before.h"

EMULATOR_BEGIN
namespace emulator {

constexpr std::int32_t kNoRelease = -1;

struct Location;

// An atomic or volatile read: from then on its thread knows the releases that the location had.
struct Acquisition {
  Location* location;
  std::uint32_t releases;
  Epoch epoch;
};

// What is kept of a block until the launch ends, because releases of it may be acquired later.
struct BlockHistory {
  std::vector<Time> fences;  // by rank: its latest
  std::vector<Acquisition> acquisitions;
  std::uint32_t at_barrier = 0;  // of these, made before the last barrier
  long search = 0;               // the last search that came here, and
  std::uint32_t searched = 0;    // how many of the acquisitions it has followed
};

// A thread's latest fence: what was done and known then is known
// to every thread that reads what this one writes afterwards.
struct LastFence {
  Time time = 0;                              // its own steps before this
  Time barrier = 0, warp = 0;                 // those of its block, and of its warp, before these
  bool has_lane_clocks = false;               // parts of its warp have synchronised: it may know more of them
  std::uint32_t known = 0;                    // of its block's acquisitions those before this
  std::uint32_t acquired = 0;                 // of its own those before this
  std::shared_ptr<const KnownBlocks> blocks;  // known then
  // By fences of other threads, followed by a barrier or a collective with them:
  Time published = 0;  // steps of the block before this
  std::uint32_t published_known = 0;
};

// An atomic or volatile write after a fence.
struct Release {
  BlockHistory* history;
  Epoch epoch;
  LastFence fence;
  Time barrier, warp;     // the last ones before it: what others fenced before these counts, too
  std::int32_t previous;  // release of the same block at the same location
};

struct Location {
  std::vector<Release> releases;
  std::unordered_map<std::uint32_t, std::int32_t> latest;  // by block
  long search = 0;                                         // the last search that came here, and
  std::uint32_t found = 0;                                 // how many of the releases it found known
};

// Of the launch that runs.
struct ReleaseLog {
  std::unordered_map<std::uint64_t, Location> locations;  // by word; their addresses stay
  std::vector<std::unique_ptr<BlockHistory>> histories;
  long searches = 0, steps = 0;
};
ReleaseLog& release_log();

// The fences and releases of a block that runs.
struct BlockFences {
  BlockHistory* history = nullptr;
  std::vector<LastFence> by_rank;
  bool has_fence = false;
  Time last_fence = 0;
  std::unordered_map<std::uint64_t, std::uint32_t> known;  // releases, by location and rank
  std::unordered_map<std::uint64_t, Epoch> released;       // the latest, by location and rank
};

}  // namespace emulator
EMULATOR_END
