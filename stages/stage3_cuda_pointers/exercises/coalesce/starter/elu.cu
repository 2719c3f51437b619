// elu of many numbers: elu X...
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 128, kEach = 8;  // elements of a thread

// Each thread computes up to eight elements.
__global__ void elu_kernel(float* out, const float* x, int64_t count) {  // [count]
  const int64_t first = (blockIdx.x * int64_t(blockDim.x) + threadIdx.x) * kEach;
  for (int64_t k = first; k < first + kEach && k < count; ++k) out[k] = x[k] > 0 ? x[k] : std::expm1(x[k]);
}

int main(int words_count, char** words) {
  const int64_t count = words_count - 1;
  float *out, *x;
  cudaMallocManaged(&out, count * sizeof(float));
  cudaMallocManaged(&x, count * sizeof(float));
  for (int64_t k = 0; k < count; ++k) x[k] = std::atof(words[1 + k]);

  const int64_t in_a_block = kThreads * kEach;
  elu_kernel<<<(count + in_a_block - 1) / in_a_block, kThreads>>>(out, x, count);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < count; ++k) std::printf("%.9g\n", out[k]);
  cudaFree(out);
  cudaFree(x);
}
