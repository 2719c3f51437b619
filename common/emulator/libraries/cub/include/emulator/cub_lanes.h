// The lanes of a warp, or of a part of it, that call a function together.
#pragma once

#include "emulator/cub_operators.h"

EMULATOR_BEGIN
namespace emulator::cub {

struct Lanes {
  unsigned rank, count, mask;

  explicit Lanes(unsigned most) {
    const unsigned lane = thread_rank() % 32, first = lane / most * most;
    rank = lane - first;
    // The last warp of a block may have fewer lanes.
    const unsigned in_warp = blockDim.x * blockDim.y * blockDim.z - (thread_rank() - lane);
    count = first + most > in_warp ? in_warp - first : most;
    mask = (count == 32 ? 0xffffffffu : (1u << count) - 1) << first;
  }
  void sync(Position where) const { __syncwarp(mask, where); }
};

}  // namespace emulator::cub
EMULATOR_END
