// A program that expects errors and handles them. They are warnings, and it does not fail.
#include <cstdio>
#include <cstdlib>

__global__ void fill(int* x) { x[threadIdx.x] = 7; }

int main() {
  int *d_x, *too_much;
  if (cudaMalloc(&too_much, size_t(1) << 50) != cudaErrorMemoryAllocation) return 1;
  cudaGetLastError();
  if (cudaMalloc(&d_x, 1024 * sizeof(int)) != cudaSuccess) return 1;
  fill<<<1, 2048>>>(d_x);
  if (cudaGetLastError() == cudaSuccess) return 1;
  fill<<<1, 1024>>>(d_x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int last;
  if (cudaMemcpy(&last, d_x + 1023, sizeof(int), cudaMemcpyDeviceToHost) != cudaSuccess) return 1;
  printf("%d\n", last);
  cudaFree(d_x);
}
