#include <cstdio>
__global__ void nothing() {}
int main(int argc, char**) {
  nothing<<<1, 1>>>();
  cudaDeviceSynchronize();
  int* p = argc > 5 ? &argc : nullptr;
  *p = 3;
}
