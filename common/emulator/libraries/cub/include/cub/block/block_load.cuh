// Stands for CUB's header of this name: a block loads an array; each thread gets adjacent elements.
#pragma once

#include "emulator/cub_operators.h"

namespace cub {

enum BlockLoadAlgorithm {  // without effect: all load the same elements
  BLOCK_LOAD_DIRECT,
  BLOCK_LOAD_STRIPED,
  BLOCK_LOAD_VECTORIZE,
  BLOCK_LOAD_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE,
  BLOCK_LOAD_WARP_TRANSPOSE_TIMESLICED
};

template <typename T, int threads_x, int count, BlockLoadAlgorithm algorithm = BLOCK_LOAD_DIRECT,
          int threads_y = 1, int threads_z = 1, int architecture = 0>
class BlockLoad {
 public:
  using TempStorage = NullType;

  explicit BlockLoad(TempStorage&) {}
  BlockLoad() {}

  template <typename Iterator>
  void Load(Iterator block, T (&items)[count]) {
    for (int i = 0; i < count; i++) items[i] = block[place(i)];
  }
  // Only the first `valid` elements of the array; the other items keep their values, or get one.
  template <typename Iterator>
  void Load(Iterator block, T (&items)[count], int valid) {
    for (int i = 0; i < count; i++)
      if (place(i) < valid) items[i] = block[place(i)];
  }
  template <typename Iterator, typename Default>
  void Load(Iterator block, T (&items)[count], int valid, Default other) {
    for (int i = 0; i < count; i++) items[i] = place(i) < valid ? T(block[place(i)]) : T(other);
  }

 private:
  static int place(int i) {
    const int rank = int(emulator::cub::thread_rank());
    return algorithm == BLOCK_LOAD_STRIPED ? i * threads_x * threads_y * threads_z + rank : rank * count + i;
  }
};

}  // namespace cub
