#include <cstdlib>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int* d_x;
  cudaMalloc(&d_x, 31 * sizeof(int));
  fill<<<1, 32>>>(d_x);
  cudaDeviceSynchronize();
  exit(5);
}
