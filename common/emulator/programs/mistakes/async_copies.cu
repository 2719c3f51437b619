// Asynchronous copies and barrier objects: memory used before a copy has arrived, missing waits and arrivals.
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>
#include <cuda/atomic>
#include <cuda/barrier>
#include <cuda/pipeline>

#include "case.h"

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// ---- a copy that is read too early

__global__ void reads_at_once(int* out, const int* in) {
  __shared__ int tile[64];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(tile));  // BUG races: tile
  out[threadIdx.x] = tile[63 - threadIdx.x];        // BUG races: tile
  cg::wait(block);
}
CASE(wrong_read_before_the_wait) { reads_at_once<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void waits_right(int* out, const int* in) {
  __shared__ int tile[64];
  const auto block = cg::this_thread_block();
  cg::memcpy_async(block, tile, in, sizeof(tile));
  cg::wait(block);
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
CASE(right_read_after_the_wait) {
  int* out = unwritten<int>(64);
  waits_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 63 - i; });
}

// A barrier of the block does not wait for copies.
__global__ void only_a_barrier(int* out, const int* in) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int));
  __pipeline_commit();
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // BUG races: tile
  __pipeline_wait_prior(0);
}
CASE(wrong_barrier_instead_of_a_wait) { only_a_barrier<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

// A thread waits for its own copies only: the others need a barrier, too.
__global__ void only_a_wait(int* out, const int* in) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int));  // BUG races: tile
  __pipeline_commit();
  __pipeline_wait_prior(0);
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG races: tile
}
CASE(wrong_wait_without_a_barrier) { only_a_wait<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void wait_and_barrier_right(int* out, const int* in) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int));
  __pipeline_commit();
  __pipeline_wait_prior(0);
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
CASE(right_wait_and_barrier) {
  int* out = unwritten<int>(64);
  wait_and_barrier_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 63 - i; });
}

// A copy that was not committed belongs to no batch, so the wait does not include it.
__global__ void no_commit(int* out, const int* in) {
  __shared__ int tile[64];
  __pipeline_memcpy_async(&tile[threadIdx.x], &in[threadIdx.x], sizeof(int));
  __pipeline_wait_prior(0);
  out[threadIdx.x] = tile[threadIdx.x];  // BUG races: tile
}
CASE(wrong_copy_is_not_committed) { no_commit<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

// ---- two buffers

// The wait leaves one batch under way: the one that is read.
__global__ void waits_for_the_other(int* out, const int* in, int parts) {
  __shared__ int buffer[2][32];
  const auto block = cg::this_thread_block();
  int sum = 0;
  cg::memcpy_async(block, buffer[0], in, sizeof(buffer[0]));
  for (int part = 0; part + 1 < parts; part++) {
    cg::memcpy_async(block, buffer[(part + 1) % 2], in + 32 * (part + 1), sizeof(buffer[0]));
    cg::wait_prior<1>(block);
    sum += buffer[(part + 1) % 2][threadIdx.x];  // BUG races: buffer
    block.sync();
  }
  cg::wait(block);
  out[threadIdx.x] = sum;
}
CASE(wrong_buffer_under_way) { waits_for_the_other<<<1, 32>>>(unwritten<int>(32), numbers<int>(128), 4); }

// The next copy overwrites the buffer while other threads may still read it.
__global__ void no_barrier_after_reading(int* out, const int* in, int parts) {
  __shared__ int buffer[32];
  int sum = 0;
  for (int part = 0; part < parts; part++) {
    const int* from = &in[32 * part];
    __pipeline_memcpy_async(&buffer[threadIdx.x], &from[threadIdx.x], 4);  // BUG races: buffer
    __pipeline_commit();
    __pipeline_wait_prior(0);
    __syncthreads();
    sum += buffer[31 - threadIdx.x];  // BUG races: buffer
  }
  out[threadIdx.x] = sum;
}
CASE(wrong_buffer_is_overwritten) {
  no_barrier_after_reading<<<1, 32>>>(unwritten<int>(32), numbers<int>(128), 4);
}

__global__ void two_buffers_right(int* out, const int* in, int parts) {
  __shared__ int buffer[2][32];
  const auto block = cg::this_thread_block();
  int sum = 0;
  cg::memcpy_async(block, buffer[0], in, sizeof(buffer[0]));
  for (int part = 0; part < parts; part++) {
    if (part + 1 < parts) {
      cg::memcpy_async(block, buffer[(part + 1) % 2], in + 32 * (part + 1), sizeof(buffer[0]));
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    sum += buffer[part % 2][31 - threadIdx.x];
    block.sync();
  }
  out[threadIdx.x] = sum;
}
CASE(right_two_buffers) {
  int* out = unwritten<int>(32);
  two_buffers_right<<<1, 32>>>(out, numbers<int>(128), 4);
  expect_each(out, 32, [](int i) { return 4 * (31 - i) + 32 * 6; });
}

__global__ void own_elements_right(int* out, const int* in) {
  __shared__ int tile[2][32];
  const int t = threadIdx.x;
  for (int batch = 0; batch < 2; batch++) {
    __pipeline_memcpy_async(&tile[batch][t], &in[32 * batch + t], sizeof(int));
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  const int first = tile[0][t];
  __pipeline_wait_prior(0);
  out[t] = first + tile[1][t];
}
CASE(right_own_elements_without_a_barrier) {
  int* out = unwritten<int>(32);
  own_elements_right<<<1, 32>>>(out, numbers<int>(64));
  expect_each(out, 32, [](int i) { return 2 * i + 32; });
}

// Each warp copies its own part, and waits only for itself.
__global__ void parts_of_warps_right(int* out, const int* in) {
  __shared__ int tile[64];
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  int* own = tile + 32 * warp.meta_group_rank();
  cg::memcpy_async(warp, own, in + 32 * warp.meta_group_rank(), 32 * sizeof(int));
  cg::wait(warp);
  out[threadIdx.x] = own[31 - warp.thread_rank()];
}
CASE(right_part_of_each_warp) {
  int* out = unwritten<int>(64);
  parts_of_warps_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return i / 32 * 32 + 31 - i % 32; });
}

// ---- barrier objects

__global__ void arrives_only(int* out, const int* in) {
  __shared__ block_barrier barrier;
  __shared__ int tile[64];
  if (threadIdx.x == 0) init(&barrier, 64);
  __syncthreads();
  tile[threadIdx.x] = in[threadIdx.x];  // BUG races: tile
  block_barrier::arrival_token token = barrier.arrive();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG races: tile
  barrier.wait(static_cast<block_barrier::arrival_token&&>(token));
}
CASE(wrong_read_between_arrival_and_wait) { arrives_only<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void arrives_and_waits_right(int* out, const int* in) {
  __shared__ block_barrier barrier;
  __shared__ int tile[64];
  if (threadIdx.x == 0) init(&barrier, 64);
  __syncthreads();
  for (int step = 0; step < 3; step++) {
    tile[threadIdx.x] = in[threadIdx.x] + step;
    barrier.arrive_and_wait();
    out[threadIdx.x] = tile[63 - threadIdx.x];
    barrier.arrive_and_wait();
  }
}
CASE(right_arrive_and_wait) {
  int* out = unwritten<int>(64);
  arrives_and_waits_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 65 - i; });
}

__global__ void expects_too_many(int* out) {
  __shared__ block_barrier barrier;
  if (threadIdx.x == 0) init(&barrier, 64);
  __syncthreads();
  if (threadIdx.x < 32) barrier.arrive_and_wait();  // BUG barriers
  out[threadIdx.x] = 1;
}
CASE(wrong_threads_never_arrive) { expects_too_many<<<1, 64>>>(unwritten<int>(64)); }

__global__ void some_arrive_only_right(int* out) {
  __shared__ block_barrier barrier;
  __shared__ int value;
  if (threadIdx.x == 0) init(&barrier, 33);
  __syncthreads();
  if (threadIdx.x == 32) {
    value = 5;
    (void)barrier.arrive();
  }
  if (threadIdx.x < 32) {
    barrier.arrive_and_wait();
    out[threadIdx.x] = value;
  }
}
CASE(right_one_thread_only_arrives) {
  int* out = unwritten<int>(32);
  some_arrive_only_right<<<1, 64>>>(out);
  expect_each(out, 32, [](int) { return 5; });
}

__global__ void not_initialised(int* out) {
  __shared__ block_barrier barrier;
  barrier.arrive_and_wait();  // BUG barriers
  out[threadIdx.x] = 1;
}
CASE(wrong_barrier_without_init) { not_initialised<<<1, 32>>>(unwritten<int>(32)); }

__global__ void copy_to_barrier_right(int* out, const int* in) {
  __shared__ block_barrier arrived;
  __shared__ int tile[64];
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&arrived, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, in, sizeof(tile), arrived);
  arrived.arrive_and_wait();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
CASE(right_copy_that_arrives_at_a_barrier) {
  int* out = unwritten<int>(64);
  copy_to_barrier_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 63 - i; });
}

__global__ void copy_to_barrier(int* out, const int* in) {
  __shared__ block_barrier arrived;
  __shared__ int tile[64];
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&arrived, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, in, sizeof(tile), arrived);
  auto token = arrived.arrive();
  block.sync();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG races: tile
  arrived.wait(static_cast<block_barrier::arrival_token&&>(token));
}
CASE(wrong_copy_read_before_its_phase) { copy_to_barrier<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

// ---- pipelines

__global__ void no_consumer_wait(int* out, const int* in) {
  __shared__ int tile[64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  pipeline.producer_acquire();
  cuda::memcpy_async(block, tile, in, sizeof(tile), pipeline);  // BUG races: tile
  pipeline.producer_commit();
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG races: tile
  pipeline.consumer_wait();
  pipeline.consumer_release();
}
CASE(wrong_stage_read_before_it_is_full) {
  no_consumer_wait<<<1, 64>>>(unwritten<int>(64), numbers<int>(64));
}

__global__ void consumer_waits_right(int* out, const int* in) {
  __shared__ int tile[64];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, 1> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int part = 0; part < 3; part++) {
    pipeline.producer_acquire();
    cuda::memcpy_async(block, tile, in, sizeof(tile), pipeline);
    pipeline.producer_commit();
    pipeline.consumer_wait();
    sum += tile[63 - threadIdx.x];
    pipeline.consumer_release();
  }
  out[threadIdx.x] = sum;
}
CASE(right_stage_read_when_it_is_full) {
  int* out = unwritten<int>(64);
  consumer_waits_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 3 * (63 - i); });
}

// ---- atomic objects

// The flag is stored without a release, so it says nothing about the data.
__global__ void relaxed_store(int* out, int* data, int* flag) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 7;  // BUG races: data
    ready.store(1, cuda::memory_order_relaxed);
  } else {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *data;  // BUG races: data
  }
}
CASE(wrong_store_without_a_release) {
  relaxed_store<<<2, 32>>>(unwritten<int>(1), unwritten<int>(1), zeros<int>(1));
}

__global__ void released_store_right(int* out, int* data, int* flag) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 7;
    ready.store(1, cuda::memory_order_release);
  } else {
    while (ready.load(cuda::memory_order_acquire) == 0) {
    }
    *out = *data;
  }
}
CASE(right_store_with_a_release) {
  int* out = unwritten<int>(1);
  released_store_right<<<2, 32>>>(out, unwritten<int>(1), zeros<int>(1));
  expect_one(out, 7);
}

__global__ void fence_right(int* out, int* data, int* flag) {
  cuda::atomic_ref<int, cuda::thread_scope_device> ready(*flag);
  if (threadIdx.x != 0) return;
  if (blockIdx.x == 0) {
    *data = 7;
    cuda::atomic_thread_fence(cuda::memory_order_release, cuda::thread_scope_device);
    ready.store(1, cuda::memory_order_relaxed);
  } else {
    while (ready.load(cuda::memory_order_relaxed) == 0) {
    }
    cuda::atomic_thread_fence(cuda::memory_order_acquire, cuda::thread_scope_device);
    *out = *data;
  }
}
CASE(right_fence_and_relaxed_store) {
  int* out = unwritten<int>(1);
  fence_right<<<2, 32>>>(out, unwritten<int>(1), zeros<int>(1));
  expect_one(out, 7);
}

__global__ void counter_right(int* count) {
  cuda::atomic_ref<int, cuda::thread_scope_device> counter(*count);
  counter.fetch_add(1, cuda::memory_order_relaxed);
  counter++;
}
CASE(right_relaxed_counter) {
  int* count = zeros<int>(1);
  counter_right<<<4, 32>>>(count);
  expect_one(count, 256);
}

int main(int words, char** word) { return run_cases(words, word); }
