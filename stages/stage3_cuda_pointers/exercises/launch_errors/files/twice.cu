// Doubles numbers in place, in one launch for each number of threads: twice COUNT X... THREADS...
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

__global__ void twice_kernel(float* x, int64_t count) {  // [count]
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) x[k] *= 2;
}

cudaError_t launch_twice(float* x, int64_t count, int threads) {
  if (count == 0) return cudaSuccess;  // an empty grid is an error
  cudaGetLastError();                  // clears the error of an earlier call
  twice_kernel<<<(count + threads - 1) / threads, threads>>>(x, count);
  return cudaGetLastError();
}

int main(int words_count, char** words) {
  const int count = std::atoi(words[1]);
  float* x;
  cudaMallocManaged(&x, (count + 1) * sizeof(float));
  for (int k = 0; k < count; ++k) x[k] = std::atof(words[2 + k]);

  for (int k = 2 + count; k < words_count; ++k)
    std::printf("%s\n", cudaGetErrorName(launch_twice(x, count, std::atoi(words[k]))));
  cudaDeviceSynchronize();

  for (int k = 0; k < count; ++k) std::printf("%.9g\n", x[k]);
  cudaFree(x);
}
