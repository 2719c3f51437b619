#include <cstdio>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int* m;
  cudaMallocManaged(&m, 32 * sizeof(int));
  m[0] = 1;
  fill<<<1, 32>>>(m);
  printf("%d\n", m[0]);
  cudaDeviceSynchronize();
  printf("%d\n", m[0]);
  cudaFree(m);
}
