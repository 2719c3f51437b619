// What happened before what, within one launch.
//
// Each block has a clock, which ticks whenever threads of it synchronise: at a barrier, when lanes of a warp
// meet, at a fence. A thread's time is that of its own last synchronisation. A stamp says whose access it
// was, and at what time of that thread's: all that a later access needs to know whether it comes after it.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "launch_state.h"

EMULATOR_BEGIN
namespace emulator {

using Time = std::uint32_t;

class Stamp {
 public:
  static constexpr int kTimeBits = 30, kRankBits = 10, kBlockBits = 24;
  static constexpr Time kLastTime = (Time(1) << kTimeBits) - 1;

  constexpr Stamp() = default;  // of nobody: block 0 has no time 0
  constexpr Stamp(std::uint64_t block, unsigned rank, Time time)
      : bits_(block << (kRankBits + kTimeBits) | std::uint64_t(rank) << kTimeBits | time) {}

  constexpr explicit operator bool() const { return bits_ != 0; }
  constexpr bool operator==(const Stamp&) const = default;
  constexpr Time time() const { return Time(bits_) & kLastTime; }
  constexpr unsigned rank() const { return unsigned(bits_ >> kTimeBits) & ((1u << kRankBits) - 1); }
  constexpr unsigned lane() const { return rank() % 32; }
  constexpr std::uint32_t block() const { return std::uint32_t(bits_ >> (kRankBits + kTimeBits)); }
  constexpr bool same_thread(Stamp other) const { return (bits_ ^ other.bits_) >> kTimeBits == 0; }
  constexpr bool same_warp(Stamp other) const { return (bits_ ^ other.bits_) >> (kTimeBits + 5) == 0; }
  constexpr bool same_block(Stamp other) const {
    return (bits_ ^ other.bits_) >> (kTimeBits + kRankBits) == 0;
  }

 private:
  std::uint64_t bits_ = 0;
};

struct Publisher;

// The clock of a block, and who has met whom.
struct BlockOrder {
  Time now;                   // the last tick
  Time barrier;               // the last block barrier: all before it is known to all
  std::vector<Time> threads;  // by rank: the last synchronisation of its own
  std::vector<Time> warps;    // by warp: when all its lanes met
  // By warp, where some lanes have met without the others, else empty: [lane][other], the time before which
  // the one knows all of the other.
  std::vector<std::vector<Time>> met;
  std::shared_ptr<Publisher> publisher;  // of releases.cpp
};

// The thread that runs, as its accesses see it.
struct Running {
  const Thread* thread;  // whose the rest is; null: nobody's
  Stamp stamp;           // none: the launch is too large to be followed
  Time barrier, warp;    // what they did before these times it knows, of its block and of its warp
  const Time* met;       // by lane, the same of each; or null
  BlockOrder* order;
};
extern Running running;
void look_up_running();

inline Stamp stamp_now() {
  if (running.thread != current) look_up_running();
  return running.stamp;
}

// Whether the thread that runs comes after what another did, by its own steps, a barrier, or a meeting of
// their warp. After stamp_now().
inline bool is_after(Stamp earlier) {
  if (earlier.same_thread(running.stamp)) return true;
  if (!earlier.same_block(running.stamp)) return false;
  if (earlier.time() < running.barrier) return true;
  if (!earlier.same_warp(running.stamp)) return false;
  return earlier.time() < running.warp || (running.met && earlier.time() < running.met[earlier.lane()]);
}

BlockOrder& order_of(const Block& block);
void begin_order(Block& block);

}  // namespace emulator
EMULATOR_END
