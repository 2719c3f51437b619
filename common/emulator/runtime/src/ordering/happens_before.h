// What happened before what, within one launch.
//
// Each block has a clock, which ticks whenever threads of it synchronise: at a
// barrier, when lanes of a warp synchronise, at a fence. A thread's time is that of
// its own last synchronisation. An epoch says whose access it was, and at what time
// of that thread's: all that a later access needs to know whether it comes after it.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

using Time = std::uint32_t;

class Epoch {
 public:
  static constexpr int kTimeBits = 30, kRankBits = 10, kBlockBits = 24;
  static constexpr Time kLastTime = (Time(1) << kTimeBits) - 1;

  constexpr Epoch() = default;  // of no access: block 0 has no time 0
  constexpr Epoch(std::uint64_t block, unsigned rank, Time time)
      : bits_(block << (kRankBits + kTimeBits) | std::uint64_t(rank) << kTimeBits | time) {}

  constexpr explicit operator bool() const { return bits_ != 0; }
  constexpr bool operator==(const Epoch&) const = default;
  constexpr Time time() const { return Time(bits_) & kLastTime; }
  constexpr unsigned rank() const { return unsigned(bits_ >> kTimeBits) & ((1u << kRankBits) - 1); }
  constexpr unsigned lane() const { return rank() % 32; }
  constexpr std::uint32_t block() const { return std::uint32_t(bits_ >> (kRankBits + kTimeBits)); }
  constexpr bool same_thread(Epoch other) const { return (bits_ ^ other.bits_) >> kTimeBits == 0; }
  constexpr bool same_warp(Epoch other) const { return (bits_ ^ other.bits_) >> (kTimeBits + 5) == 0; }
  constexpr bool same_block(Epoch other) const {
    return (bits_ ^ other.bits_) >> (kTimeBits + kRankBits) == 0;
  }

 private:
  std::uint64_t bits_ = 0;
};

struct BlockFences;
struct BlockHistory;

// What all threads of a block know of the blocks that were with them at barriers of a cluster or of the grid.
struct KnownBlock {
  Time before;                // its steps before this time,
  std::vector<Time> arrived;  // or by rank, where threads did other work between arriving and waiting
  BlockHistory* history;      // and its
  std::uint32_t acquisitions;
};
struct BlockRange {
  std::uint64_t begin, end;  // numbers
};
struct KnownBlocks {
  std::unordered_map<std::uint32_t, KnownBlock> blocks;  // by number
  std::vector<BlockRange> ended;                         // all of what they did is known

  bool covers(Epoch earlier) const;
};

// The clock of a block, and which of its threads have synchronised with each other.
struct BlockClock {
  Time now;                   // the last tick
  Time barrier;               // the last block barrier: all before it is known to all
  std::vector<Time> threads;  // by rank: the last synchronisation of its own
  std::vector<Time> warps;    // by warp: when all its lanes synchronised
  // By warp, where some lanes have synchronised without the others, else empty: the vector clock of each
  // lane, [lane][other], the time before which it knows all of the other.
  std::vector<std::vector<Time>> lane_clocks;
  std::shared_ptr<BlockFences> fences;  // of release_acquire.cpp
  // Since the last barrier of its cluster or the grid, and, for threads that have not waited there, before.
  std::shared_ptr<const KnownBlocks> known, known_before;
};

// The clock of the thread that runs, looked up once between two synchronisations.
struct ThreadClock {
  const Thread* thread;  // whose the rest is; null: to be looked up
  Epoch epoch;           // none: the launch is too large to be followed
  Time barrier, warp;    // it knows what its block, and its warp, did before these times
  const Time* lanes;     // by lane, the same of each (its vector clock); or null
  BlockClock* block;
  const std::shared_ptr<const KnownBlocks>* known;  // of other blocks; may point to null
};
extern EMULATOR_OF_CORE ThreadClock thread_clock;
void look_up_thread_clock();

inline Epoch epoch_now() {
  if (thread_clock.thread != running.thread) look_up_thread_clock();
  return thread_clock.epoch;
}

// Whether the thread that runs comes after what another did, by its own steps, a barrier of their block,
// cluster or grid, or a collective of their warp. After epoch_now().
[[gnu::always_inline]] inline bool is_after(Epoch earlier) {
  if (earlier.same_block(thread_clock.epoch)) {
    if (earlier.time() < thread_clock.barrier || earlier.same_thread(thread_clock.epoch)) return true;
    const bool is_known_in_warp =
        earlier.same_warp(thread_clock.epoch) &&
        (earlier.time() < thread_clock.warp ||
         (thread_clock.lanes && earlier.time() < thread_clock.lanes[earlier.lane()]));
    if (is_known_in_warp) return true;
  }
  return *thread_clock.known && (*thread_clock.known)->covers(earlier);
}

BlockClock& clock_of(const Block& block);
Time tick(BlockClock& clock);
void begin_clock(Block& block);
void synchronise(Block& block);                                            // at its barrier
void synchronise_lanes(Block& block, unsigned warp, std::uint32_t lanes);  // also lanes that have returned

}  // namespace emulator
EMULATOR_END
