// Mean and variance of each row of a matrix: statistics B S X...
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 128;

// Adds up one number from each thread of the block, and returns the sum to every thread.
__device__ float block_sum(float mine) {
  __shared__ float partial[kThreads];
  const int t = threadIdx.x;
  partial[t] = mine;
  __syncthreads();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  const float total = partial[0];
  __syncthreads();  // the next call writes to partial
  return total;
}

// One block per row.
__global__ void statistics_kernel(float* statistics,  // [B,2]: mean, variance
                                  const float* x,     // [B,S]
                                  int64_t S) {
  const float* row = x + blockIdx.x * S;
  float sum = 0;
  for (int64_t k = threadIdx.x; k < S; k += kThreads) sum += row[k];
  const float mean = block_sum(sum) / S;
  float squares = 0;
  for (int64_t k = threadIdx.x; k < S; k += kThreads) squares += (row[k] - mean) * (row[k] - mean);
  const float variance = block_sum(squares) / S;
  if (threadIdx.x == 0) {
    statistics[blockIdx.x * 2] = mean;
    statistics[blockIdx.x * 2 + 1] = variance;
  }
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]);
  float *statistics, *x;
  cudaMallocManaged(&statistics, B * 2 * sizeof(float));
  cudaMallocManaged(&x, B * S * sizeof(float));
  for (int64_t k = 0; k < B * S; ++k) x[k] = std::atof(words[3 + k]);

  statistics_kernel<<<B, kThreads>>>(statistics, x, S);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < B * 2; ++k) std::printf("%.9g\n", statistics[k]);
  cudaFree(statistics);
  cudaFree(x);
}
