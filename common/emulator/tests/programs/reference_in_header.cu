// A kernel with a parameter that is a reference, which a header declares.
#include <cstdio>

#include "parts/count_up.cuh"

__managed__ int counter = 40;

int main() {
  count_up<<<1, 1>>>(counter, 2);
  cudaDeviceSynchronize();
  std::printf("%d\n", counter);
}
