// Stands for CUDA's header of this name.
#pragma once

#include "cooperative_groups.h"
#include "emulator/group_operators.h"

EMULATOR_BEGIN
namespace cooperative_groups {

// The value of the rank that is `distance` before its own; its own if there is none.
template <typename Group, typename T>
T emulator_earlier(const Group& group, const T& value, unsigned distance, emulator::Position where) {
  const unsigned own = group.thread_rank();
  return group.emulator_take(emulator::Operation::shfl_up, value, own >= distance ? own - distance : own,
                             where);
}

// The values of the ranks up to its own, combined.
template <typename Group, typename T, typename Operator>
T inclusive_scan(const Group& group, T value, Operator&& combine, EMULATOR_HERE) {
  for (unsigned distance = 1; distance < group.size(); distance *= 2) {
    const T earlier = emulator_earlier(group, value, distance, where);
    if (group.thread_rank() >= distance) value = T(combine(earlier, value));
  }
  return value;
}
template <typename Group, typename T>
T inclusive_scan(const Group& group, T value, EMULATOR_HERE) {
  return inclusive_scan(group, value, plus<T>(), where);
}

// The values of the ranks before its own; rank 0 gets a zero.
template <typename Group, typename T, typename Operator>
T exclusive_scan(const Group& group, T value, Operator&& combine, EMULATOR_HERE) {
  const T earlier = emulator_earlier(group, inclusive_scan(group, value, combine, where), 1, where);
  return group.thread_rank() == 0 ? T{} : earlier;
}
template <typename Group, typename T>
T exclusive_scan(const Group& group, T value, EMULATOR_HERE) {
  return exclusive_scan(group, value, plus<T>(), where);
}

}  // namespace cooperative_groups
EMULATOR_END
