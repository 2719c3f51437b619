// Difficult cases for the counts: lanes far apart, few lanes, variables that are not in memory. The tests
// read the lines `by hand:`. On a GPU, the compiler may translate some of this in another way.
#include <cstdio>

#include "corners.h"

constexpr int kLong = 5000;

__constant__ float factors[4] = {1, 2, 3, 4};
__device__ float kept[64];

// Each warp executes the load 5000 times, which is more than the number of requests that can be open.
// by hand: global load: 10000 requests, 320000 lanes, 40000 sectors, 40000 ideal
// by hand: global store: 2 requests, 64 lanes, 8 sectors, 8 ideal
__global__ void long_loop(float* y, const float* x) {
  float sum = 0;
  for (int k = 0; k < kLong; k++) sum += x[k % 8 * 64 + threadIdx.x];
  y[threadIdx.x] = sum;
}

// One lane works while the others wait.
// by hand: global load: 5000 requests, 5000 lanes, 5000 sectors, 5000 ideal
// by hand: shared store: 1 requests, 1 lanes, 1 wavefronts, 0 conflicts
// by hand: shared load: 2 requests, 64 lanes, 2 wavefronts, 0 conflicts
// by hand: global store: 2 requests, 64 lanes, 8 sectors, 8 ideal
__global__ void one_lane_ahead(float* y, const float* x) {
  __shared__ float sum;
  if (threadIdx.x == 40) {
    float mine = 0;
    for (int k = 0; k < kLong; k++) mine += x[k % 64];
    sum = mine;
  }
  __syncthreads();
  y[threadIdx.x] = sum;
}

// The halves of a warp synchronise separately; their accesses before and after that form one request again.
// by hand: global load: 1 requests, 32 lanes, 4 sectors, 4 ideal
// by hand: global store: 1 requests, 32 lanes, 4 sectors, 4 ideal
__global__ void halves(float* y, const float* x) {
  const float mine = x[threadIdx.x];
  const unsigned mask = threadIdx.x < 16 ? 0x0000ffff : 0xffff0000;
  y[threadIdx.x] = __shfl_xor_sync(mask, mine, 1);
}

// A whole warp and 8 lanes, of which three return early.
// by hand: global load: 2 requests, 37 lanes, 5 sectors, 5 ideal
// by hand: global store: 2 requests, 37 lanes, 5 sectors, 5 ideal
__global__ void few_lanes(float* y, const float* x) {
  if (threadIdx.x >= 37) return;
  y[threadIdx.x] = x[threadIdx.x];
}

// A thread's own array, arguments and constants are not in global memory, but a variable at file scope is.
// by hand: global load: 4 requests, 128 lanes, 16 sectors, 16 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void own_memory(float* y, const float* x, Sizes sizes) {
  float own[4];
  for (int k = 0; k < 4; k++) own[(k + threadIdx.x) % 4] = factors[k] * float(sizes.of[k]);
  kept[threadIdx.x] += own[threadIdx.x % 4];
  y[threadIdx.x] = x[threadIdx.x] + own[sizes.of[0] % 4];
}

// 32 lanes add to the same word, one after another. Then an eighth of the lanes adds in each of 8 banks.
// by hand: shared store: 4 requests, 128 lanes, 4 wavefronts, 0 conflicts
// by hand: shared atomic: 4 requests, 128 lanes, 72 wavefronts, 68 conflicts
// by hand: shared load: 2 requests, 64 lanes, 2 wavefronts, 0 conflicts
// by hand: global store: 2 requests, 64 lanes, 8 sectors, 8 ideal
__global__ void shared_atomics(float* y, const float*) {
  __shared__ int counted[128];
  counted[threadIdx.x] = 0;
  counted[threadIdx.x + 64] = 0;
  __syncthreads();
  atomicAdd(&counted[0], 1);
  atomicAdd(&counted[threadIdx.x % 8], 1);
  __syncthreads();
  y[threadIdx.x] = float(counted[threadIdx.x]);
}

// Through functions, of this file and of a header.
// by hand: global load: 6 requests, 192 lanes, 24 sectors, 24 ideal
// by hand: global store: 2 requests, 64 lanes, 8 sectors, 8 ideal
__device__ __noinline__ float far(const float* x) { return x[threadIdx.x]; }
__global__ void through_functions(float* y, const float* x) {
  y[threadIdx.x] = far(x) + near(x) + __ldg(&x[threadIdx.x + 128]);
}

int main() {
  constexpr int kBytes = 1 << 16;
  float *x, *y;
  cudaMalloc(&x, kBytes);
  cudaMalloc(&y, kBytes);
  cudaMemset(x, 0, kBytes);

  long_loop<<<1, 64>>>(y, x);
  one_lane_ahead<<<1, 64>>>(y, x);
  halves<<<1, 32>>>(y, x);
  few_lanes<<<1, 40>>>(y, x);
  own_memory<<<1, 64>>>(y, x, Sizes{{1, 2, 3, 4}});
  shared_atomics<<<1, 64>>>(y, x);
  through_functions<<<1, 64>>>(y, x);

  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  cudaFree(x);
  cudaFree(y);
  return error != cudaSuccess;
}
