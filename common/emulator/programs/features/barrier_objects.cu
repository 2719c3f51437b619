// libcu++: cuda::barrier with arrive, wait, try_wait_for, arrive_and_drop and memcpy_async
// Support: yes
#include <cooperative_groups.h>
#include <cuda/barrier>
#include <cuda/std/chrono>

#include <cstdio>
#include <utility>
#include <vector>

namespace cg = cooperative_groups;
using block_barrier = cuda::barrier<cuda::thread_scope_block>;

// One warp produces values, and the others consume them. Two barriers pass the buffer back and forth.
__global__ void producer_and_consumers(int* out, int steps) {
  __shared__ block_barrier full, empty;
  __shared__ int buffer[32];
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) {
    init(&full, blockDim.x);
    init(&empty, blockDim.x);
  }
  block.sync();
  const bool is_producer = threadIdx.x < 32;
  int sum = 0;
  for (int step = 0; step < steps; step++) {
    if (is_producer) {
      if (step > 0) empty.arrive_and_wait();
      buffer[threadIdx.x] = 100 * step + threadIdx.x;
      (void)full.arrive();
    } else {
      block_barrier::arrival_token token = full.arrive();
      full.wait(std::move(token));
      sum += buffer[31 - threadIdx.x % 32];
      if (step + 1 < steps) (void)empty.arrive();
    }
  }
  if (!is_producer) out[blockIdx.x * (blockDim.x - 32) + threadIdx.x - 32] = sum;
}

// A copy arrives in a phase of the barrier: who waits for the phase may read it.
__global__ void copy_and_scale(float* out, const float* in, int count) {
  extern __shared__ float tile[];
  __shared__ block_barrier arrived;
  const auto block = cg::this_thread_block();
  if (block.thread_rank() == 0) init(&arrived, block.size());
  block.sync();
  cuda::memcpy_async(block, tile, in, sizeof(float) * count, arrived);
  auto token = arrived.arrive();
  while (!arrived.try_wait_for(std::move(token), cuda::std::chrono::nanoseconds(100))) {
  }
  for (int i = threadIdx.x; i < count; i += blockDim.x) out[i] = 2 * tile[count - 1 - i];
}

// Threads that have no work left drop out, and the barrier no longer waits for them.
__global__ void fewer_and_fewer(int* out) {
  __shared__ block_barrier barrier;
  __shared__ int values[64];
  if (threadIdx.x == 0) init(&barrier, 64);
  __syncthreads();
  values[threadIdx.x] = 1;
  for (int half = 32; half > 0; half /= 2) {
    if (threadIdx.x >= 2 * half) return;
    if (threadIdx.x >= half) {
      barrier.arrive_and_drop();
      return;
    }
    barrier.arrive_and_wait();
    values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) *out = values[0];
}

int main() {
  constexpr int kSteps = 4, kConsumers = 64, kCount = 100;
  int *d_out, got[2 * kConsumers];
  cudaMalloc(&d_out, sizeof(got));
  producer_and_consumers<<<2, 32 + kConsumers>>>(d_out, kSteps);
  cudaMemcpy(got, d_out, sizeof(got), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 2 * kConsumers; i++) {
    const int expected = 100 * 6 + kSteps * (31 - i % 32);
    if (got[i] != expected)
      return std::fprintf(stderr, "sum %d is %d, expected %d\n", i, got[i], expected), 1;
  }
  fewer_and_fewer<<<1, 64>>>(d_out);
  cudaMemcpy(got, d_out, sizeof(int), cudaMemcpyDeviceToHost);
  if (got[0] != 64) return std::fprintf(stderr, "the sum is %d, expected 64\n", got[0]), 1;

  float *d_in, *d_scaled;
  std::vector<float> in(kCount), scaled(kCount);
  for (int i = 0; i < kCount; i++) in[i] = float(i);
  cudaMalloc(&d_in, kCount * sizeof(float));
  cudaMalloc(&d_scaled, kCount * sizeof(float));
  cudaMemcpy(d_in, in.data(), kCount * sizeof(float), cudaMemcpyHostToDevice);
  copy_and_scale<<<1, 64, kCount * sizeof(float)>>>(d_scaled, d_in, kCount);
  cudaMemcpy(scaled.data(), d_scaled, kCount * sizeof(float), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kCount; i++)
    if (scaled[i] != 2 * float(kCount - 1 - i))
      return std::fprintf(stderr, "element %d is %g, expected %d\n", i, scaled[i], 2 * (kCount - 1 - i)), 1;
  cudaFree(d_out), cudaFree(d_in), cudaFree(d_scaled);
}
