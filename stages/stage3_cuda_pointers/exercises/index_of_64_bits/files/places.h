// Index arithmetic for tensors of any size.
#pragma once

#include <cstdint>

// The index of a unit of a gate (0, 1 or 2) of a row, in gates of shape [B,3S].
__host__ __device__ inline int64_t place_of(int row, int gate, int unit, int state_size) {
  return int64_t(row) * 3 * state_size + int64_t(gate) * state_size + unit;
}

// The number of a thread in a grid of one dimension.
__host__ __device__ inline int64_t number_of(unsigned block, unsigned threads, unsigned thread) {
  return int64_t(block) * threads + thread;
}

// The number of blocks needed to have a thread for every element of the gates.
__host__ __device__ inline int64_t blocks_for(int batch_size, int state_size, int threads) {
  return (int64_t(batch_size) * 3 * state_size + threads - 1) / threads;
}
