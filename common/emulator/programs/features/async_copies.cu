// Asynchronous copies to shared memory: memcpy_async of cooperative groups, and cuda_pipeline.h
// Support: yes
#include <cooperative_groups.h>
#include <cooperative_groups/memcpy_async.h>
#include <cuda_pipeline.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

// Two buffers take turns: while the block adds up one part, the next is on its way.
template <int kPart>
__global__ void sum_of_parts(int* sums, const int* in, int parts) {
  __shared__ int buffer[2][kPart];
  const auto block = cg::this_thread_block();
  const int* own = in + blockIdx.x * parts * kPart;
  int sum = 0;
  cg::memcpy_async(block, buffer[0], own, sizeof(int) * kPart);
  for (int part = 0; part < parts; part++) {
    if (part + 1 < parts) {
      cg::memcpy_async(block, buffer[(part + 1) % 2], own + (part + 1) * kPart, sizeof(int) * kPart);
      cg::wait_prior<1>(block);
    } else {
      cg::wait(block);
    }
    sum += buffer[part % 2][(threadIdx.x + 1) % kPart];
    block.sync();  // all have read the buffer that the next copy overwrites
  }
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}

// Each thread copies for itself, in batches. The end of the array is filled with zeros.
__global__ void own_copies(float4* out, const float4* in, int count) {
  __shared__ float4 stage[2][32];
  const int t = threadIdx.x;
  for (int batch = 0; batch < 2; batch++) {
    const int i = 32 * batch + t;
    __pipeline_memcpy_async(&stage[batch][t], &in[i < count ? i : 0], sizeof(float4),
                            i < count ? 0 : sizeof(float4));
    __pipeline_commit();
  }
  __pipeline_wait_prior(1);
  const float4 first = stage[0][t];
  __pipeline_wait_prior(0);
  const float4 second = stage[1][t];
  out[t] = make_float4(first.x + second.x, first.y + second.y, first.z + second.z, first.w + second.w);
}

int main() {
  constexpr int kPart = 64, kParts = 5, kBlocks = 3;
  std::vector<int> in(kBlocks * kParts * kPart), got(kBlocks * kPart);
  for (size_t i = 0; i < in.size(); i++) in[i] = int(i * i % 101);
  int *d_in, *d_sums;
  cudaMalloc(&d_in, in.size() * sizeof(int));
  cudaMalloc(&d_sums, got.size() * sizeof(int));
  cudaMemcpy(d_in, in.data(), in.size() * sizeof(int), cudaMemcpyHostToDevice);
  sum_of_parts<kPart><<<kBlocks, kPart>>>(d_sums, d_in, kParts);
  cudaMemcpy(got.data(), d_sums, got.size() * sizeof(int), cudaMemcpyDeviceToHost);
  for (int i = 0; i < kBlocks * kPart; i++) {
    int expected = 0;
    for (int part = 0; part < kParts; part++)
      expected += in[(i / kPart * kParts + part) * kPart + (i + 1) % kPart];
    if (got[i] != expected)
      return std::fprintf(stderr, "sum %d is %d, expected %d\n", i, got[i], expected), 1;
  }

  constexpr int kCount = 50;
  float4 host[kCount], *d_out, *d_vectors, sums[32];
  for (int i = 0; i < kCount; i++) host[i] = make_float4(i, 2 * i, 3 * i, 4 * i);
  cudaMalloc(&d_out, sizeof(sums));
  cudaMalloc(&d_vectors, sizeof(host));
  cudaMemcpy(d_vectors, host, sizeof(host), cudaMemcpyHostToDevice);
  own_copies<<<1, 32>>>(d_out, d_vectors, kCount);
  cudaMemcpy(sums, d_out, sizeof(sums), cudaMemcpyDeviceToHost);
  for (int t = 0; t < 32; t++) {
    const float expected = 4 * (t + (t + 32 < kCount ? t + 32 : 0));
    if (sums[t].w != expected)
      return std::fprintf(stderr, "w %d is %g, expected %g\n", t, sums[t].w, expected), 1;
  }
  cudaFree(d_in), cudaFree(d_sums), cudaFree(d_out), cudaFree(d_vectors);
}
