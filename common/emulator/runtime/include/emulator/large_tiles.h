// The groups of cooperative_groups.h that consist of several warps of one block: tiles of 64 to 512 threads.
#pragma once

#include <type_traits>

#include "emulator/groups_of_lanes.h"
#include "emulator/named_barriers.h"

EMULATOR_BEGIN
namespace cooperative_groups {

template <unsigned Size, typename Parent>
requires(Size > 32) class thread_block_tile<Size, Parent> {
  static_assert((Size & (Size - 1)) == 0, "the size of a tile must be a power of two");
  static_assert(Size <= 512, "a tile has at most 512 threads");

 public:
  thread_block_tile(unsigned group, unsigned groups) : group_(group), groups_(groups) {}
  template <typename Other>
  thread_block_tile(const thread_block_tile<Size, Other>& same)
      : thread_block_tile(same.meta_group_rank(), same.meta_group_size()) {}

  static constexpr unsigned num_threads() { return Size; }
  static constexpr unsigned size() { return Size; }
  static unsigned thread_rank() { return emulator::rank_in_block() % Size; }
  unsigned meta_group_rank() const { return group_; }
  unsigned meta_group_size() const { return groups_; }
  static void sync(EMULATOR_HERE) { emulator::sync_tile(Size, where); }

  template <typename T>
  static T shfl(const T& value, unsigned rank, EMULATOR_HERE) {
    emulator::check_source_in_tile(Size, rank, where);
    return emulator_take(emulator::Operation::shfl, value, rank, where);
  }
  static int any(int predicate, EMULATOR_HERE) { return count(predicate != 0, where) > 0; }
  static int all(int predicate, EMULATOR_HERE) { return count(predicate != 0, where) == Size; }

  // The value of the thread with a rank, which may differ from thread to thread.
  template <typename T>
  static T emulator_take(emulator::Operation, const T& value, unsigned rank, emulator::Position where) {
    static_assert(std::is_trivially_copyable_v<T>, "only trivially copyable values can be exchanged");
    T taken = value;
    emulator::exchange_in_tile(Size, rank, &value, &taken, sizeof(T), where);
    return taken;
  }

 private:
  // How many threads said yes.
  static unsigned count(unsigned said, emulator::Position where) {
    for (unsigned bit = Size / 2; bit > 0; bit /= 2)
      said += emulator_take(emulator::Operation::shfl_xor, said, thread_rank() ^ bit, where);
    return said;
  }

  unsigned group_, groups_;  // which of its parent's parts it is, and how many there are
};

}  // namespace cooperative_groups
EMULATOR_END
