// Which thread writes which element: who B S ROW UNIT
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// One thread per (row, unit) writes the numbers of its block and its own number into one int: XYYTTT.
__global__ void who_kernel(int* who, int64_t S) {  // [B,S]
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= S) return;
  who[row * S + unit] = (blockIdx.x * 100 + blockIdx.y) * 1000 + threadIdx.x;
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]);
  int* who;
  cudaMallocManaged(&who, B * S * sizeof(int));

  const int threads = 32;
  who_kernel<<<dim3((S + threads - 1) / threads, B), threads>>>(who, S);
  cudaDeviceSynchronize();

  const int number = who[std::atoll(words[3]) * S + std::atoll(words[4])];
  std::printf("%d %d %d\n", number / 100000, number / 1000 % 100, number % 1000);  // block x, block y, thread
  cudaFree(who);
}
