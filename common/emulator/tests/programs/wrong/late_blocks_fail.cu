// On several cores, a block may fail before an earlier one does: without checks, too, the first in order is
// named.
#include <cuda_runtime.h>

#include <string>

constexpr int kBlocks = 100, kFirst = 40;

__device__ int sink;
__device__ int deep(int n) {
  volatile char local[1024];
  local[n % 1024] = 1;
  return n > 1 << 30 ? 0 : deep(n + 1) + local[n % 512];
}

// Earlier blocks take longer. Whether this block fails.
__device__ bool works_long() {
  volatile float sum = 0;
  for (int i = 0; i < 100 * (kBlocks - int(blockIdx.x)); i++) sum = sum + 1.0f / float(1 + i);
  return blockIdx.x >= kFirst;
}

__global__ void trap() {
  if (works_long()) __trap();
}
__global__ void fault() {
  if (works_long()) *reinterpret_cast<int*>(16) = 1;
}
__global__ void overflow() {
  if (works_long()) sink = deep(0);
}
__global__ void deadlock() {
  if (!works_long()) return;
  if (threadIdx.x == 0) __syncwarp(0x3);
  if (threadIdx.x == 1) __shfl_sync(0x3, 1, 0);
}
__global__ void shared_memory() {
  if (!works_long()) return;
  __shared__ float values[12200];
  __shared__ float more[12200];
  values[threadIdx.x] = more[threadIdx.x] = 1;
}

int main(int, char** words) {
  const std::string mistake = words[1];
  if (mistake == "trap") trap<<<kBlocks, 32>>>();
  if (mistake == "fault") fault<<<kBlocks, 32>>>();
  if (mistake == "overflow") overflow<<<kBlocks, 32>>>();
  if (mistake == "deadlock") deadlock<<<kBlocks, 2>>>();
  if (mistake == "shared memory") shared_memory<<<kBlocks, 32>>>();
  cudaDeviceSynchronize();
  return 0;
}
