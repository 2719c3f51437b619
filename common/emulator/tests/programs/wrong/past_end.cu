#include <cstdio>
__global__ void fill(int* x, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i <= n) x[i] = i;
}
int main() {
  int* d_x;
  cudaMalloc(&d_x, 100 * sizeof(int));
  fill<<<4, 32>>>(d_x, 100);
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  printf("%s\n", cudaGetErrorName(cudaDeviceSynchronize()));
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
  printf("%s\n", cudaGetErrorName(cudaFree(d_x)));
  printf("%s\n", cudaGetErrorName(cudaDeviceReset()));
  printf("%s\n", cudaGetErrorName(cudaGetLastError()));
}
