// libcu++: cuda::pipeline of one thread and of a block, with producers and consumers
// Support: yes
#include <cooperative_groups.h>
#include <cuda/pipeline>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

constexpr int kPart = 64, kStages = 2;

// All threads of the block copy the parts, kStages ahead of the part that they add up.
__global__ void all_do_both(int* sums, const int* in, int parts) {
  __shared__ int buffer[kStages][kPart];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  auto pipeline = cuda::make_pipeline(block, &state);
  int sum = 0;
  for (int part = 0, next = 0; part < parts; part++) {
    for (; next < parts && next < part + kStages; next++) {
      pipeline.producer_acquire();
      cuda::memcpy_async(block, buffer[next % kStages], in + next * kPart, sizeof(int) * kPart, pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += buffer[part % kStages][kPart - 1 - threadIdx.x];
    pipeline.consumer_release();
  }
  sums[threadIdx.x] = sum;
}

// The first warp copies, and the other two add up.
__global__ void roles(int* sums, const int* in, int parts) {
  __shared__ int buffer[kStages][kPart];
  __shared__ cuda::pipeline_shared_state<cuda::thread_scope_block, kStages> state;
  const auto block = cg::this_thread_block();
  const auto warp = cg::tiled_partition<32>(block);
  const bool is_producer = threadIdx.x < 32;
  auto pipeline = cuda::make_pipeline(
      block, &state, is_producer ? cuda::pipeline_role::producer : cuda::pipeline_role::consumer);
  int sum = 0;
  for (int part = 0; part < parts; part++) {
    if (is_producer) {
      pipeline.producer_acquire();
      cuda::memcpy_async(warp, buffer[part % kStages], in + part * kPart, sizeof(int) * kPart, pipeline);
      pipeline.producer_commit();
    } else {
      pipeline.consumer_wait();
      sum += buffer[part % kStages][kPart - 1 - (threadIdx.x - 32)];
      pipeline.consumer_release();
    }
  }
  if (!is_producer) sums[threadIdx.x - 32] = sum;
}

// Each thread has a pipeline of its own, for its own elements.
__global__ void own_pipeline(int* sums, const int* in, int parts) {
  __shared__ int buffer[kStages][kPart];
  auto pipeline = cuda::make_pipeline();
  int sum = 0;
  for (int part = 0, next = 0; part < parts; part++) {
    for (; next < parts && next < part + kStages; next++) {
      pipeline.producer_acquire();
      cuda::memcpy_async(&buffer[next % kStages][threadIdx.x], &in[next * kPart + kPart - 1 - threadIdx.x],
                         sizeof(int), pipeline);
      pipeline.producer_commit();
    }
    pipeline.consumer_wait();
    sum += buffer[part % kStages][threadIdx.x];
    pipeline.consumer_release();
  }
  sums[threadIdx.x] = sum;
}

int main() {
  constexpr int kParts = 7;
  std::vector<int> in(kParts * kPart), got(3 * kPart);
  for (int i = 0; i < kParts * kPart; i++) in[i] = i * i % 103;
  int *d_in, *d_sums;
  cudaMalloc(&d_in, in.size() * sizeof(int));
  cudaMalloc(&d_sums, got.size() * sizeof(int));
  cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice);
  all_do_both<<<1, kPart>>>(d_sums, d_in, kParts);
  roles<<<1, 32 + kPart>>>(d_sums + kPart, d_in, kParts);
  own_pipeline<<<1, kPart>>>(d_sums + 2 * kPart, d_in, kParts);
  cudaMemcpy(got.data(), d_sums, got.size() * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 3 * kPart; i++) {
    int expected = 0;
    for (int part = 0; part < kParts; part++) expected += in[part * kPart + kPart - 1 - i % kPart];
    if (got[i] != expected)
      return std::fprintf(stderr, "sum %d is %d, expected %d\n", i, got[i], expected), 1;
  }
  cudaFree(d_in), cudaFree(d_sums);
}
