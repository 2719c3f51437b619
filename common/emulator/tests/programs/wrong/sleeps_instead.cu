#include <unistd.h>

#include <cstdio>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int* m;
  cudaMallocManaged(&m, 32 * sizeof(int));
  fill<<<1, 32>>>(m);
  sleep(1);
  printf("%d\n", m[0]);
  cudaDeviceSynchronize();
  cudaFree(m);
}
