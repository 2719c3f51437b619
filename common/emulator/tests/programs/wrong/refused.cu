#include <cstdio>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int* d_x;
  cudaMalloc(&d_x, 2048 * sizeof(int));
  fill<<<1, 2048>>>(d_x);
  cudaDeviceSynchronize();
  cudaFree(d_x);
}
