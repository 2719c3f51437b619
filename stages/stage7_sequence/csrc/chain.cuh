// The blocks of a chain: who they are, and how they wait for one another.
#pragma once

#include <cooperative_groups.h>

#include <cuda/atomic>

#include "layout.h"
#include "work.h"

// What all threads of a block know of its chain.
struct Chain {
  int index;  // among all chains
  int rank;   // of this block in the chain
  int blocks;
  bool in_shared_memory;
  unsigned* arrivals;     // in global memory, zero at launch: of the chain's blocks, in all steps
  unsigned barriers = 0;  // that this thread has passed

  __device__ Chain(const Division& division, int first_chain, unsigned* arrivals_of_chains)
      : index(first_chain + blockIdx.x / division.blocks),
        rank(blockIdx.x % division.blocks),
        blocks(division.blocks),
        in_shared_memory(division.in_shared_memory),
        arrivals(arrivals_of_chains + blockIdx.x / division.blocks * (kArrivalBytes / sizeof(unsigned))) {}

  // The address of a block's shared memory that corresponds to an address in this block's.
  template <typename T>
  __device__ T* shared_memory_of(T* mine, int block) const {
#if __CUDA_ARCH__ >= 900
    if (blocks > 1) return cooperative_groups::this_cluster().map_shared_rank(mine, block);
#endif
    return mine;
  }

  // Waits for all blocks of the chain. What they wrote before is then visible.
  __device__ void wait() {
    if (blocks == 1) return __syncthreads();
#if __CUDA_ARCH__ >= 900
    if (in_shared_memory) return cooperative_groups::this_cluster().sync();
#endif
    wait_for_arrivals();
  }

 private:
  __device__ void wait_for_arrivals() {
    ++barriers;
    __syncthreads();
    if (threadIdx.x == 0) {
      const cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*arrivals);
      counter.fetch_add(1, cuda::memory_order_release);
      while (counter.load(cuda::memory_order_acquire) < barriers * blocks) {
      }
    }
    __syncthreads();
  }
};

// A row of the batch and a unit of the block, for which one thread computes the gates in each step.
struct Pair {
  int row, unit;  // in the chain and in the block
  int index;      // row * units + unit
  int64_t b, s;   // in the batch and in the state
  int64_t of_bs;  // in an array [B,S]
  bool is_valid;  // not padding

  __device__ Pair(int index, const Division& division, const Chain& chain, const Sizes& sizes)
      : row(index / division.units),
        unit(index % division.units),
        index(index),
        b(int64_t(chain.index) * division.rows + row),
        s(int64_t(chain.rank) * division.units + unit),
        of_bs(b * sizes.state + s),
        is_valid(row < division.rows && b < sizes.batch && s < sizes.state) {}

  // In an array [B,numbers,S].
  __device__ int64_t of_numbers(int numbers, const Sizes& sizes) const {
    return b * numbers * sizes.state + s;
  }
};
