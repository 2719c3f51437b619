#include <cassert>
#include <cstdio>
__global__ void check(int n) { assert(threadIdx.x < n); }
int main() {
  check<<<1, 64>>>(33);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
