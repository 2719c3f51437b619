// A barrier of the grid by atomics, for as many blocks as a large GPU runs at once: all of their threads
// wait.
#include <cstdio>

__device__ unsigned arrived;
__device__ volatile unsigned phase;

__device__ void meet() {
  __syncthreads();
  if (threadIdx.x == 0) {
    const unsigned before = phase;
    __threadfence();
    if (atomicAdd(&arrived, 1) == gridDim.x - 1) {
      arrived = 0;
      __threadfence();
      phase = before + 1;
    } else {
      while (phase == before) {
      }
    }
    __threadfence();
  }
  __syncthreads();
}

// Each step adds one to the element of the thread one block further.
__global__ void shift(int* x, int steps) {
  const int count = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < steps; step++) {
    const int neighbour = x[(i + blockDim.x) % count];
    meet();
    x[i] = neighbour + 1;
    meet();
  }
}

int main() {
  constexpr int blocks = 128, threads = 256, steps = 2;
  int *x, result[blocks * threads];
  cudaMalloc(&x, sizeof(result));
  for (int i = 0; i < blocks * threads; i++) result[i] = i;
  cudaMemcpy(x, result, sizeof(result), cudaMemcpyHostToDevice);
  shift<<<blocks, threads>>>(x, steps);
  cudaMemcpy(result, x, sizeof(result), cudaMemcpyDeviceToHost);
  cudaFree(x);
  int wrong = 0;
  for (int i = 0; i < blocks * threads; i++)
    wrong += result[i] != (i + steps * threads) % (blocks * threads) + steps;
  std::printf("%d wrong\n", wrong);
}
