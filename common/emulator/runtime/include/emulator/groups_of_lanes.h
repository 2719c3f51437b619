// The groups of cooperative_groups.h that consist of lanes of one warp: tiles and coalesced groups. Lanes of
// a group have ranks 0, 1, 2, ... in the order of their lane numbers.
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/synchronise.h"

EMULATOR_BEGIN
namespace emulator {

// Each lane gives a value of any size, and gets that of a source lane.
template <typename T>
T exchange(Operation operation, std::uint32_t mask, const T& value, unsigned source, Position where) {
  static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can be exchanged");
  T result = value;
  for (std::size_t at = 0; at < sizeof(T); at += 8) {
    std::uint64_t bits = 0;
    const std::size_t bytes = sizeof(T) - at < 8 ? sizeof(T) - at : 8;
    __builtin_memcpy(&bits, reinterpret_cast<const char*>(&value) + at, bytes);
    bits = warp_collective(operation, mask, bits, source, where);
    __builtin_memcpy(reinterpret_cast<char*>(&result) + at, &bits, bytes);
  }
  return result;
}

inline unsigned lane_of_rank(std::uint32_t mask, unsigned rank) {
  while (rank-- > 0) mask &= mask - 1;
  return unsigned(__builtin_ctz(mask));
}

}  // namespace emulator

namespace cooperative_groups {

// Lanes of one warp, as tiles and coalesced groups have in common.
class lane_group {
 public:
  unsigned num_threads() const { return unsigned(__builtin_popcount(mask_)); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const {
    return unsigned(__builtin_popcount(mask_ & ((1u << emulator::current_lane()) - 1)));
  }
  unsigned meta_group_rank() const { return group_; }
  unsigned meta_group_size() const { return groups_; }
  void sync(EMULATOR_HERE) const {
    emulator::warp_collective(emulator::Operation::syncwarp, mask_, 0, 0, where);
  }

  template <typename T>
  T shfl(const T& value, unsigned rank, EMULATOR_HERE) const {
    return emulator_take(emulator::Operation::shfl, value, rank % num_threads(), where);
  }
  template <typename T>
  T shfl_up(const T& value, unsigned delta, EMULATOR_HERE) const {
    const unsigned own = thread_rank();
    return emulator_take(emulator::Operation::shfl_up, value, own >= delta ? own - delta : own, where);
  }
  template <typename T>
  T shfl_down(const T& value, unsigned delta, EMULATOR_HERE) const {
    const unsigned own = thread_rank();
    return emulator_take(emulator::Operation::shfl_down, value,
                         own + delta < num_threads() ? own + delta : own, where);
  }

  int any(int predicate, EMULATOR_HERE) const {
    return int(emulator::warp_collective(emulator::Operation::any, mask_, predicate != 0, 0, where));
  }
  int all(int predicate, EMULATOR_HERE) const {
    return int(emulator::warp_collective(emulator::Operation::all, mask_, predicate != 0, 0, where));
  }
  // These have a bit for each rank.
  unsigned ballot(int predicate, EMULATOR_HERE) const {
    return by_rank(__ballot_sync(mask_, predicate, where));
  }
  template <typename T>
  unsigned match_any(T value, EMULATOR_HERE) const {
    return by_rank(__match_any_sync(mask_, value, where));
  }
  template <typename T>
  unsigned match_all(T value, int& is_same, EMULATOR_HERE) const {
    return by_rank(__match_all_sync(mask_, value, &is_same, where));
  }

  std::uint32_t emulator_mask() const { return mask_; }
  // The value of the lane with a rank, which may differ from lane to lane.
  template <typename T>
  T emulator_take(emulator::Operation operation, const T& value, unsigned rank,
                  emulator::Position where) const {
    return emulator::exchange(operation, mask_, value, emulator::lane_of_rank(mask_, rank), where);
  }

 protected:
  lane_group(std::uint32_t mask, unsigned group, unsigned groups)
      : mask_(mask), group_(group), groups_(groups) {}

 private:
  unsigned by_rank(std::uint32_t lanes) const {
    unsigned ranks = 0, rank = 0;
    for (std::uint32_t left = mask_; left; left &= left - 1, rank++)
      ranks |= unsigned((lanes & left & -left) != 0) << rank;
    return ranks;
  }

  std::uint32_t mask_;
  unsigned group_, groups_;  // which of its parent's parts it is, and how many there are
};

// The lanes that took the same branch, or a part of another group of lanes.
class coalesced_group : public lane_group {
 public:
  explicit coalesced_group(std::uint32_t mask, unsigned group = 0, unsigned groups = 1)
      : lane_group(mask, group, groups) {}
};

template <unsigned Size, typename Parent = void>
class thread_block_tile : public lane_group {
  static_assert(Size > 0 && (Size & (Size - 1)) == 0, "the size of a tile must be a power of two");

 public:
  thread_block_tile(unsigned group, unsigned groups)
      : lane_group(mask_of(emulator::current_lane()), group, groups) {}
  template <typename Other>
  thread_block_tile(const thread_block_tile<Size, Other>& same)
      : thread_block_tile(same.meta_group_rank(), same.meta_group_size()) {}

  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return emulator::current_lane() % Size; }

  template <typename T>
  T shfl_xor(const T& value, unsigned mask, EMULATOR_HERE) const {
    const unsigned other = thread_rank() ^ mask;
    return this->emulator_take(emulator::Operation::shfl_xor, value, other < Size ? other : thread_rank(),
                               where);
  }

 private:
  static std::uint32_t mask_of(unsigned lane) {
    return (Size == 32 ? ~0u : (1u << Size % 32) - 1) << lane / Size * Size;
  }
};

inline coalesced_group coalesced_threads(EMULATOR_HERE) {
  return coalesced_group(emulator::active_lanes(where));
}

}  // namespace cooperative_groups
EMULATOR_END
