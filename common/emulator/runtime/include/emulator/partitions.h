// How groups are divided, and functions of any group.
#pragma once

#include <type_traits>
#include <utility>

#include "emulator/groups_of_blocks.h"
#include "emulator/groups_of_lanes.h"
#include "emulator/large_tiles.h"

EMULATOR_BEGIN
namespace cooperative_groups {

template <unsigned Size, typename Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent& parent) {
  return {parent.thread_rank() / Size, (unsigned(parent.size()) + Size - 1) / Size};
}

inline thread_block_tile<1> this_thread() { return {0, 1}; }

// Any group of at most one block.
class thread_group {
 public:
  thread_group(const thread_block&) : is_block_(true), lanes_(0) {}
  thread_group(const lane_group& lanes)
      : is_block_(false), lanes_(lanes.emulator_mask(), lanes.meta_group_rank(), lanes.meta_group_size()) {}

  void sync(EMULATOR_HERE) const {
    if (is_block_)
      thread_block::sync(where);
    else
      lanes_.sync(where);
  }
  unsigned num_threads() const { return is_block_ ? thread_block::size() : lanes_.size(); }
  unsigned size() const { return num_threads(); }
  unsigned thread_rank() const { return is_block_ ? thread_block::thread_rank() : lanes_.thread_rank(); }

  bool emulator_is_block() const { return is_block_; }
  const coalesced_group& emulator_lanes() const { return lanes_; }

 private:
  bool is_block_;
  coalesced_group lanes_;
};

// Lanes of a group by ranks: 0 to size - 1, size to 2 * size - 1, and so on.
inline coalesced_group tiled_partition(const coalesced_group& parent, unsigned size) {
  const unsigned part = parent.thread_rank() / size;
  std::uint32_t mask = 0;
  for (unsigned rank = part * size; rank < (part + 1) * size && rank < parent.size(); rank++)
    mask |= 1u << emulator::lane_of_rank(parent.emulator_mask(), rank);
  return coalesced_group(mask, part, (parent.size() + size - 1) / size);
}
inline thread_group tiled_partition(const thread_group& parent, unsigned size) {
  if (!parent.emulator_is_block()) return tiled_partition(parent.emulator_lanes(), size);
  if (size == 0 || size > 32 || (size & (size - 1)))
    emulator::abandon("calls tiled_partition with the size %u: it must be a power of two, at most 32", size);
  const std::uint32_t first = size == 32 ? ~0u : (1u << size) - 1;
  return coalesced_group(first << emulator::current_lane() / size * size, parent.thread_rank() / size,
                         (parent.size() + size - 1) / size);
}

// The lanes of the group that have the same label, or that agree.
template <typename Label>
coalesced_group labeled_partition(const lane_group& group, Label label, EMULATOR_HERE) {
  static_assert(std::is_integral_v<Label>, "a label must be an integer");
  return coalesced_group(__match_any_sync(group.emulator_mask(), label, where));
}
inline coalesced_group binary_partition(const lane_group& group, bool predicate, EMULATOR_HERE) {
  const unsigned agreeing = __ballot_sync(group.emulator_mask(), predicate, where);
  return coalesced_group(predicate ? agreeing : group.emulator_mask() & ~agreeing, !predicate, 2);
}

template <typename Group>
void sync(const Group& group, EMULATOR_HERE) {
  group.sync(where);
}
template <typename Group>
auto thread_rank(const Group& group) {
  return group.thread_rank();
}
template <typename Group>
auto group_size(const Group& group) {
  return group.size();
}

// One thread of the group calls the function; the group is not synchronised.
template <typename Group, typename Function, typename... Arguments>
void invoke_one(const Group& group, Function&& function, Arguments&&... arguments) {
  if (group.thread_rank() == 0) std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
}
template <typename Group, typename Function, typename... Arguments>
auto invoke_one_broadcast(const Group& group, Function&& function, Arguments&&... arguments) {
  std::decay_t<std::invoke_result_t<Function, Arguments...>> result{};
  if (group.thread_rank() == 0)
    result = std::forward<Function>(function)(std::forward<Arguments>(arguments)...);
  return group.shfl(result, 0);
}

}  // namespace cooperative_groups
EMULATOR_END
