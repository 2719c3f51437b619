#include <cstdio>
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
int main() {
  float* d_x;
  cudaMalloc(&d_x, 32 * sizeof(float));
  fill<<<1, 32>>>(d_x);
  cudaDeviceSynchronize();
  printf("%g\n", d_x[3]);
  cudaFree(d_x);
}
