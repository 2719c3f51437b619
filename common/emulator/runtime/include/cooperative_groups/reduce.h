// Stands for CUDA's header of this name.
#pragma once

#include "cooperative_groups.h"
#include "emulator/group_operators.h"

EMULATOR_BEGIN
namespace cooperative_groups {

// Every thread gets the result. The values are combined in pairs of ranks that differ in one bit, so threads
// of a tile get the same bits.
template <unsigned Size, typename Parent, typename T, typename Operator>
T reduce(const thread_block_tile<Size, Parent>& group, T value, Operator&& combine, EMULATOR_HERE) {
  for (unsigned bit = Size / 2; bit > 0; bit /= 2) {
    const T other =
        group.emulator_take(emulator::Operation::shfl_xor, value, group.thread_rank() ^ bit, where);
    value = group.thread_rank() & bit ? T(combine(other, value)) : T(combine(value, other));
  }
  return value;
}

// The values are combined in the order of ranks.
template <typename T, typename Operator>
T reduce(const coalesced_group& group, T value, Operator&& combine, EMULATOR_HERE) {
  T result = group.shfl(value, 0, where);
  for (unsigned rank = 1; rank < group.size(); rank++)
    result = T(combine(result, group.shfl(value, rank, where)));
  return result;
}

}  // namespace cooperative_groups
EMULATOR_END
