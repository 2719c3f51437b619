// Stands for CUB's header of this name: a block stores an array; each thread has adjacent elements.
#pragma once

#include "emulator/cub_operators.h"

namespace cub {

enum BlockStoreAlgorithm {  // without effect: all store the same elements
  BLOCK_STORE_DIRECT,
  BLOCK_STORE_STRIPED,
  BLOCK_STORE_VECTORIZE,
  BLOCK_STORE_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE,
  BLOCK_STORE_WARP_TRANSPOSE_TIMESLICED
};

template <typename T, int threads_x, int count, BlockStoreAlgorithm algorithm = BLOCK_STORE_DIRECT,
          int threads_y = 1, int threads_z = 1, int architecture = 0>
class BlockStore {
 public:
  using TempStorage = NullType;

  explicit BlockStore(TempStorage&) {}
  BlockStore() {}

  template <typename Iterator>
  void Store(Iterator block, T (&items)[count]) {
    for (int i = 0; i < count; i++) block[place(i)] = items[i];
  }
  template <typename Iterator>
  void Store(Iterator block, T (&items)[count], int valid) {
    for (int i = 0; i < count; i++)
      if (place(i) < valid) block[place(i)] = items[i];
  }

 private:
  static int place(int i) {
    const int rank = int(emulator::cub::thread_rank());
    return algorithm == BLOCK_STORE_STRIPED ? i * threads_x * threads_y * threads_z + rank : rank * count + i;
  }
};

}  // namespace cub
