// Without CUDA's headers, which nvcc includes by itself. Device functions, printf, assert, __shared__ at file
// scope.
#include <assert.h>
#include <stdio.h>

__shared__ int sums[2];
extern __shared__ float dynamic[];

__device__ int square(int x) { return x * x; }
__host__ __device__ inline int twice(int x) { return 2 * x; }

__global__ void talk(int* out) {
  if (threadIdx.x < 2) sums[threadIdx.x] = 0;
  dynamic[threadIdx.x] = square(threadIdx.x);
  __syncthreads();
  atomicAdd(&sums[threadIdx.x % 2], int(dynamic[threadIdx.x]));
  __syncthreads();
  assert(sums[0] >= 0);
  if (threadIdx.x == 0) {
    printf("block %d: %d and %d\n", blockIdx.x, sums[0], sums[1]);
    out[blockIdx.x] = twice(sums[0] + sums[1]);
  }
}

int main() {
  int out[2], *d_out;
  cudaMalloc(&d_out, sizeof(out));
  talk<<<2, 8, 8 * sizeof(float)>>>(d_out);
  cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost);
  printf("%d %d\n", out[0], out[1]);
  cudaFree(d_out);
  return out[1] == 280 ? 0 : 1;
}
