// A block that may run on another core than the launch does not end.
#include <cuda_runtime.h>

__global__ void endless(int n) {
  if (blockIdx.x == 40)
    for (volatile int i = 0; n;) i = 1;
}

int main() {
  endless<<<100, 32>>>(1);
  cudaDeviceSynchronize();
  return 0;
}
