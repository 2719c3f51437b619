// The exchange of a backward step between the blocks of a cluster.
#pragma once

#include <cooperative_groups.h>

// All threads of all blocks of the cluster call it once in each step. Block k / units owns unit k of S.
__device__ void reduce_scatter(float* d_h,       // [count], out: the sums of this block's units
                               float* part,      // [S]: this block's part of the sums of all units
                               float* received,  // [2,blocks,units]: for what other blocks send
                               int count,        // of this block's units: units, or fewer in the last blocks
                               int units, int S, int step) {
  const auto cluster = cooperative_groups::this_cluster();
  const int blocks = cluster.num_blocks(), rank = cluster.block_rank();
  // BEGIN SOLUTION: exchange the parts, then add them in the order of the blocks.
  float* const own_buffer = received + step % 2 * blocks * units;
  for (int k = threadIdx.x; k < S; k += blockDim.x)
    cluster.map_shared_rank(own_buffer, k / units)[rank * units + k % units] = part[k];
  cluster.sync();
  for (int i = threadIdx.x; i < count; i += blockDim.x) {
    float sum = 0;
    for (int source = 0; source < blocks; ++source) sum += own_buffer[source * units + i];
    d_h[i] = sum;
  }
  // BEGIN STARTER
  // // So far, each block uses only its own part.
  // for (int i = threadIdx.x; i < count; i += blockDim.x) d_h[i] = part[rank * units + i];
  // END STARTER
  // END SOLUTION
}
