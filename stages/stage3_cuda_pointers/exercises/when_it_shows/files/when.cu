// Shows which call reports an error: `when BLOCKS THREADS memory` or `when BLOCKS THREADS null`
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

constexpr int kCount = 1000;

__global__ void fill_kernel(int* x, int count) {  // [count]
  const int k = blockIdx.x * blockDim.x + threadIdx.x;
  if (k < count) x[k] = k;
}

int main(int, char** words) {
  const int blocks = std::atoi(words[1]), threads = std::atoi(words[2]);
  int* x = nullptr;
  if (std::strcmp(words[3], "memory") == 0) cudaMallocManaged(&x, kCount * sizeof(int));

  fill_kernel<<<blocks, threads>>>(x, kCount);
  std::printf("launch: %s\n", cudaGetErrorName(cudaGetLastError()));
  std::printf("wait:   %s\n", cudaGetErrorName(cudaDeviceSynchronize()));

  int* other = nullptr;
  cudaMallocManaged(&other, kCount * sizeof(int));
  fill_kernel<<<4, 256>>>(other, kCount);
  std::printf("again:  %s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  cudaFree(x);
  cudaFree(other);
}
