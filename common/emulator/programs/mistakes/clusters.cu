// Clusters: blocks that access each other's shared memory before, between or after the barriers that allow
// it.
#include <cooperative_groups.h>

#include "case.h"

namespace cg = cooperative_groups;

// ---- barriers of the cluster that are left out

__global__ void __cluster_dims__(2) no_barrier(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  cluster.sync();
  value[threadIdx.x] = blockIdx.x;  // BUG races: value
  __syncthreads();
  out[cluster.thread_rank()] =
      cluster.map_shared_rank(value, 1 - cluster.block_rank())[threadIdx.x];  // BUG races: value
  cluster.sync();
}
CASE(wrong_read_without_a_barrier) { no_barrier<<<2, 32>>>(unwritten<int>(64)); }

__global__ void __cluster_dims__(2) barrier_right(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  value[threadIdx.x] = blockIdx.x;
  cluster.sync();
  out[cluster.thread_rank()] = cluster.map_shared_rank(value, 1 - cluster.block_rank())[threadIdx.x];
  cluster.sync();
}
CASE(right_read_after_a_barrier) {
  int* out = unwritten<int>(64);
  barrier_right<<<2, 32>>>(out);
  expect_each(out, 64, [](int i) { return 1 - i / 32; });
}

// The block writes its values again while a peer may still read them.
__global__ void __cluster_dims__(2) overwrites(int* out, int steps) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  const int* peer = cluster.map_shared_rank(value, 1 - cluster.block_rank());
  for (int step = 0; step < steps; step++) {
    value[threadIdx.x] = 100 * step + cluster.block_rank();  // BUG races: value
    cluster.sync();
    out[cluster.thread_rank()] = peer[threadIdx.x];  // BUG races: value
  }
  cluster.sync();
}
CASE(wrong_one_barrier_for_each_step) { overwrites<<<2, 32>>>(unwritten<int>(64), 3); }

__global__ void __cluster_dims__(2) two_buffers_right(int* out, int steps) {
  __shared__ int value[2][32];
  const auto cluster = cg::this_cluster();
  for (int step = 0; step < steps; step++) {
    value[step % 2][threadIdx.x] = 100 * step + cluster.block_rank();
    cluster.sync();
    out[cluster.thread_rank()] =
        cluster.map_shared_rank(value[step % 2], 1 - cluster.block_rank())[threadIdx.x];
  }
  cluster.sync();
}
CASE(right_two_buffers_take_turns) {
  int* out = unwritten<int>(64);
  two_buffers_right<<<2, 32>>>(out, 3);
  expect_each(out, 64, [](int i) { return 201 - i / 32; });
}

// The step reads the buffer that the peer writes in this step.
__global__ void __cluster_dims__(2) reads_wrong_buffer(int* out, int steps) {
  __shared__ int value[2][32];
  const auto cluster = cg::this_cluster();
  value[0][threadIdx.x] = value[1][threadIdx.x] = 0;
  cluster.sync();
  for (int step = 0; step < steps; step++) {
    const int* peer = cluster.map_shared_rank(value[(step + 1) % 2], 1 - cluster.block_rank());
    value[(step + 1) % 2][threadIdx.x] = step + 1 + cluster.block_rank();  // BUG races: value
    out[cluster.thread_rank()] = peer[threadIdx.x];                        // BUG races: value
    cluster.sync();
  }
}
CASE(wrong_buffer_of_the_step) { reads_wrong_buffer<<<2, 32>>>(unwritten<int>(64), 3); }

// Each block writes the slices of its peers, and reads its own.
__global__ void __cluster_dims__(4) scatter(int* out) {
  __shared__ int slice[4];
  const auto cluster = cg::this_cluster();
  cluster.sync();
  if (threadIdx.x < 4)
    cluster.map_shared_rank(slice, threadIdx.x)[cluster.block_rank()] = blockIdx.x;  // BUG races: slice
  __syncthreads();
  if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = slice[threadIdx.x];  // BUG races: slice
  cluster.sync();
}
CASE(wrong_slice_read_before_it_is_written) { scatter<<<4, 32>>>(unwritten<int>(16)); }

__global__ void __cluster_dims__(4) scatter_right(int* out) {
  __shared__ int slice[4];
  const auto cluster = cg::this_cluster();
  cluster.sync();
  if (threadIdx.x < 4) cluster.map_shared_rank(slice, threadIdx.x)[cluster.block_rank()] = blockIdx.x;
  cluster.sync();
  if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = slice[threadIdx.x];
}
CASE(right_slice_read_after_a_barrier) {
  int* out = unwritten<int>(16);
  scatter_right<<<4, 32>>>(out);
  expect_each(out, 16, [](int i) { return i % 4; });
}

// One block signals the other through shared memory.
__global__ void __cluster_dims__(2) signal(int* out) {
  __shared__ int value, flag;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) flag = 0;
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    *cluster.map_shared_rank(&value, 1) = 5;  // BUG races: value
    atomicExch(cluster.map_shared_rank(&flag, 1), 1);
  }
  if (cluster.block_rank() == 1 && threadIdx.x == 0) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    *out = value;  // BUG races: value
  }
  cluster.sync();
}
CASE(wrong_signal_without_a_fence) { signal<<<2, 32>>>(unwritten<int>(1)); }

__global__ void __cluster_dims__(2) signal_right(int* out) {
  __shared__ int value, flag;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) flag = 0;
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) {
    *cluster.map_shared_rank(&value, 1) = 5;
    __threadfence();
    atomicExch(cluster.map_shared_rank(&flag, 1), 1);
  }
  if (cluster.block_rank() == 1 && threadIdx.x == 0) {
    while (atomicAdd(&flag, 0) == 0) {
    }
    *out = value;
  }
  cluster.sync();
}
CASE(right_signal_after_a_fence) {
  int* out = unwritten<int>(1);
  signal_right<<<2, 32>>>(out);
  expect_one(out, 5);
}

// ---- blocks that have not started, or have ended

__global__ void __cluster_dims__(2) early(int* out) {
  __shared__ int value;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0)
    *cluster.map_shared_rank(&value, 1 - cluster.block_rank()) = blockIdx.x;  // BUG races: value
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = value;
}
CASE(wrong_peer_may_not_have_started) { early<<<2, 32>>>(unwritten<int>(2)); }

__global__ void __cluster_dims__(2) started_right(int* out) {
  __shared__ int value;
  const auto cluster = cg::this_cluster();
  auto token = cluster.barrier_arrive();
  const int own = blockIdx.x;
  cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token));
  if (threadIdx.x == 0) *cluster.map_shared_rank(&value, 1 - cluster.block_rank()) = own;
  cluster.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = value;
}
CASE(right_all_blocks_have_started) {
  int* out = unwritten<int>(2);
  started_right<<<2, 32>>>(out);
  expect_each(out, 2, [](int i) { return 1 - i; });
}

__global__ void __cluster_dims__(2) late(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  value[threadIdx.x] = blockIdx.x;
  cluster.sync();
  out[cluster.thread_rank()] =
      cluster.map_shared_rank(value, 1 - cluster.block_rank())[threadIdx.x];  // BUG races: value
}
CASE(wrong_peer_may_have_ended) { late<<<2, 32>>>(unwritten<int>(64)); }

__global__ void __cluster_dims__(2) one_block_reads(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  value[threadIdx.x] = blockIdx.x;
  auto token = cluster.barrier_arrive();
  cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token));
  if (cluster.block_rank() == 0)
    out[threadIdx.x] = cluster.map_shared_rank(value, 1)[threadIdx.x];  // BUG races: value
  cluster.barrier_arrive();                                             // WARNING barriers
}
CASE(wrong_end_without_a_wait) { one_block_reads<<<2, 32>>>(unwritten<int>(32)); }

__global__ void __cluster_dims__(2) stays_right(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  value[threadIdx.x] = blockIdx.x;
  cluster.sync();
  const int other = cluster.map_shared_rank(value, 1 - cluster.block_rank())[threadIdx.x];
  auto token = cluster.barrier_arrive();
  out[cluster.thread_rank()] = other;
  cluster.barrier_wait(static_cast<cg::cluster_group::arrival_token&&>(token));
}
CASE(right_blocks_stay_until_all_have_read) {
  int* out = unwritten<int>(64);
  stays_right<<<2, 32>>>(out);
  expect_each(out, 64, [](int i) { return 1 - i / 32; });
}

// ---- bounds, names and values of a peer's memory

__global__ void __cluster_dims__(2) past_the_end(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  value[threadIdx.x] = 1;
  cluster.sync();
  out[cluster.thread_rank()] = cluster.map_shared_rank(value, 0)[threadIdx.x + 1];  // BUG memory: value
  cluster.sync();
}
CASE(wrong_past_the_end_of_the_peers_array) { past_the_end<<<2, 32>>>(unwritten<int>(64)); }

__global__ void __cluster_dims__(2) no_such_rank(int* out) {
  __shared__ int value;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) value = 1;
  cluster.sync();
  out[cluster.thread_rank()] = *cluster.map_shared_rank(&value, cluster.block_rank() + 1);  // BUG memory
  cluster.sync();
}
CASE(wrong_rank_outside_the_cluster) { no_such_rank<<<2, 32>>>(unwritten<int>(64)); }

__global__ void __cluster_dims__(2) not_written(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  if (threadIdx.x < 31) value[threadIdx.x] = 1;
  cluster.sync();
  out[cluster.thread_rank()] = cluster.map_shared_rank(value, 1)[threadIdx.x];  // BUG initialisation: value
  cluster.sync();
}
CASE(wrong_peer_has_not_written_it) { not_written<<<2, 32>>>(unwritten<int>(64)); }

__global__ void __cluster_dims__(2) neighbours_right(int* out) {
  extern __shared__ int value[];
  const auto cluster = cg::this_cluster();
  const unsigned next = (cluster.block_rank() + 1) % cluster.num_blocks();
  cluster.sync();
  cluster.map_shared_rank(value, next)[31 - threadIdx.x] = cluster.thread_rank();
  cluster.sync();
  out[cluster.thread_rank()] = value[threadIdx.x] + 1000 * cluster.query_shared_rank(value);
}
CASE(right_peer_writes_it) {
  int* out = unwritten<int>(64);
  neighbours_right<<<2, 32, 32 * sizeof(int)>>>(out);
  expect_each(out, 64, [](int i) { return (1 - i / 32) * 32 + 31 - i % 32 + i / 32 * 1000; });
}

// ---- threads that do not reach the barrier

__global__ void __cluster_dims__(2) two_barriers(int* out) {
  const auto cluster = cg::this_cluster();
  if (threadIdx.x < 32)
    cluster.sync();  // BUG barriers
  else
    __syncthreads();  // BUG barriers
  out[cluster.thread_rank()] = 1;
}
CASE(wrong_two_kinds_of_barrier) { two_barriers<<<2, 64>>>(unwritten<int>(128)); }

__global__ void __cluster_dims__(2) waits_only(int* out) {
  const auto cluster = cg::this_cluster();
  __cluster_barrier_wait();  // BUG barriers
  out[cluster.thread_rank()] = 1;
}
CASE(wrong_wait_without_an_arrival) { waits_only<<<2, 32>>>(unwritten<int>(64)); }

__global__ void __cluster_dims__(2) arrives_and_waits_right(int* out) {
  __cluster_barrier_arrive();
  __cluster_barrier_wait();
  out[cg::this_cluster().thread_rank()] = 1;
}
CASE(right_arrival_and_wait) {
  int* out = unwritten<int>(64);
  arrives_and_waits_right<<<2, 32>>>(out);
  expect_each(out, 64, [](int) { return 1; });
}

__global__ void __cluster_dims__(2) one_block_returns(int* out) {
  const auto cluster = cg::this_cluster();
  if (cluster.block_rank() == 1) return;
  cluster.sync();  // WARNING barriers
  out[threadIdx.x] = 1;
}
CASE(warned_block_ends_before_the_barrier) { one_block_returns<<<2, 32>>>(unwritten<int>(32)); }

// A cluster of one block is a block.
__global__ void without_clusters_right(int* out) {
  __shared__ int value[32];
  const auto cluster = cg::this_cluster();
  value[threadIdx.x] = threadIdx.x;
  cluster.sync();
  out[threadIdx.x] = cluster.map_shared_rank(value, 0)[31 - threadIdx.x] + cluster.num_blocks();
}
CASE(right_cluster_of_one_block) {
  int* out = unwritten<int>(32);
  without_clusters_right<<<1, 32>>>(out);
  expect_each(out, 32, [](int i) { return 32 - i; });
}

__global__ void __cluster_dims__(2) first_use_right(int* out) {
  __shared__ int used_later[32];
  const auto cluster = cg::this_cluster();
  cluster.sync();
  if (cluster.block_rank() == 0) cluster.map_shared_rank(used_later, 1)[threadIdx.x] = 3;
  cluster.sync();
  if (cluster.block_rank() == 1) out[threadIdx.x] = used_later[threadIdx.x];
}
CASE(right_first_use_by_a_peer) {
  int* out = unwritten<int>(32);
  first_use_right<<<2, 32>>>(out);
  expect_each(out, 32, [](int) { return 3; });
}

// ---- launches that a device refuses

CASE(wrong_grid_of_one_and_a_half_clusters) {
  barrier_right<<<3, 32>>>(unwritten<int>(96));  // BUG launch: barrier_right
}

template <int kBlocks>
__global__ void ranks(int* out) {
  const auto cluster = cg::this_cluster();
  if (cluster.thread_rank() == 0) out[cg::this_grid().cluster_rank()] = cluster.num_blocks();
}
template <typename Kernel>
cudaError_t launch_in_clusters(Kernel kernel, int blocks, int cluster, int* out) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim.x = cluster;
  attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks, config.blockDim = 32;
  config.attrs = &attribute, config.numAttrs = 1;
  return cudaLaunchKernelEx(&config, kernel, out);  // WARNING launch: kernel
}
CASE(warned_cluster_of_sixteen) {
  expect(launch_in_clusters(ranks<1>, 16, 16, unwritten<int>(1)) != cudaSuccess);
  cudaGetLastError();
}
CASE(right_cluster_of_sixteen) {
  int* out = unwritten<int>(2);
  check(cudaFuncSetAttribute(ranks<2>, cudaFuncAttributeNonPortableClusterSizeAllowed, 1));
  check(launch_in_clusters(ranks<2>, 32, 16, out));
  expect_each(out, 2, [](int) { return 16; });
}

// ---- more than one kind of order

// Threads of a block learn from a barrier of the block what one of them learnt at that of the cluster.
__global__ void __cluster_dims__(2) block_barrier_between_right(int* out) {
  __shared__ int value[64];
  const auto cluster = cg::this_cluster();
  const int* peer = cluster.map_shared_rank(value, 1 - cluster.block_rank());
  for (int step = 0; step < 2; step++) {
    value[threadIdx.x] = step + blockIdx.x;
    __syncthreads();
    cluster.sync();
    const int other = peer[63 - threadIdx.x];
    __syncthreads();
    cluster.sync();
    out[cluster.thread_rank()] = other;
  }
}
CASE(right_barriers_of_block_and_cluster) {
  int* out = unwritten<int>(128);
  block_barrier_between_right<<<2, 64>>>(out);
  expect_each(out, 128, [](int i) { return 2 - i / 64; });
}

// The sum of all blocks, in the shared memory of one of them.
__global__ void __cluster_dims__(4) sum_right(int* out) {
  __shared__ int total;
  const auto cluster = cg::this_cluster();
  if (threadIdx.x == 0) total = 0;
  cluster.sync();
  atomicAdd(cluster.map_shared_rank(&total, 0), 1);
  cluster.sync();
  if (cluster.block_rank() == 0 && threadIdx.x == 0) out[blockIdx.x / 4] = total;
}
CASE(right_atomics_of_all_blocks) {
  int* out = unwritten<int>(2);
  sum_right<<<8, 32>>>(out);
  expect_each(out, 2, [](int) { return 128; });
}

// What a block learns at the barrier of the cluster it passes on, by a flag, to a block of another cluster.
__global__ void __cluster_dims__(2) passed_on_right(int* data, int* flag, int* out) {
  const auto cluster = cg::this_cluster();
  if (blockIdx.x == 0 && threadIdx.x == 0) *data = 9;
  cluster.sync();
  if (blockIdx.x == 1 && threadIdx.x == 0) {
    __threadfence();
    atomicExch(flag, 1);
  }
  if (blockIdx.x == 2 && threadIdx.x == 0)
    while (atomicAdd(flag, 0) == 0) {
    }
  cluster.sync();
  if (blockIdx.x == 3) out[threadIdx.x] = *data;
}
CASE(right_flag_between_clusters) {
  int* out = unwritten<int>(32);
  passed_on_right<<<4, 32>>>(unwritten<int>(1), zeros<int>(1), out);
  expect_each(out, 32, [](int) { return 9; });
}

// Barriers of the cluster and of the grid in one kernel.
__global__ void both_right(int* values, int* out) {
  __shared__ int value;
  const auto cluster = cg::this_cluster();
  const auto grid = cg::this_grid();
  if (threadIdx.x == 0) value = blockIdx.x;
  cluster.sync();
  if (threadIdx.x == 0) values[blockIdx.x] = *cluster.map_shared_rank(&value, 1 - cluster.block_rank());
  grid.sync();
  if (threadIdx.x < 4) out[4 * blockIdx.x + threadIdx.x] = values[threadIdx.x];
}
CASE(right_barriers_of_cluster_and_grid) {
  int* out = unwritten<int>(16);
  cudaLaunchAttribute attributes[2];
  attributes[0].id = cudaLaunchAttributeClusterDimension;
  attributes[0].val.clusterDim.x = 2;
  attributes[0].val.clusterDim.y = attributes[0].val.clusterDim.z = 1;
  attributes[1].id = cudaLaunchAttributeCooperative;
  attributes[1].val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = 4, config.blockDim = 32;
  config.attrs = attributes, config.numAttrs = 2;
  check(cudaLaunchKernelEx(&config, both_right, unwritten<int>(4), out));
  expect_each(out, 16, [](int i) { return i % 4 ^ 1; });
}

int main(int words, char** word) { return run_cases(words, word); }
