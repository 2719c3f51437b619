// Stands for CUDA's header of this name.
#pragma once

#include "cooperative_groups.h"
#include "emulator/copy_shape.h"

EMULATOR_BEGIN
namespace cooperative_groups {

// The threads of the group copy together. Each call is a batch.
template <typename Group, typename T, typename Size>
void memcpy_async(const Group& group, T* to, const T* from, const Size& bytes) {
  emulator::begin_group_copy(group, to, from, std::size_t(bytes));
  emulator::commit_copies();
}
template <typename Group, typename T, typename Size, typename OtherSize>
void memcpy_async(const Group& group, T* to, const Size& capacity, const T* from, const OtherSize& elements) {
  const std::size_t count = std::min(std::size_t(capacity), std::size_t(elements));
  emulator::begin_group_copy(group, to, from, count * sizeof(T));
  emulator::commit_copies();
}

template <unsigned batches, typename Group>
void wait_prior(const Group& group, EMULATOR_HERE) {
  emulator::wait_for_copies(batches);
  group.sync(where);
}
template <typename Group>
void wait(const Group& group, EMULATOR_HERE) {
  emulator::wait_for_copies(0);
  group.sync(where);
}

}  // namespace cooperative_groups
EMULATOR_END
