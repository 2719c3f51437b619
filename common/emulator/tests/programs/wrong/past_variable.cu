#include <cuda_runtime.h>
__device__ int pair[2];
__global__ void past_end(int n) { pair[n] = 42; }
int main() {
  past_end<<<1, 1>>>(2);
  cudaDeviceSynchronize();
}
