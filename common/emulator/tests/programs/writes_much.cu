// Writes each of many elements once.
#include <cstdio>

__global__ void fill(int* x, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] = i;
}

int main() {
  constexpr int count = 4 << 20;
  int* x;
  cudaMalloc(&x, count * sizeof(int));
  fill<<<count / 256, 256>>>(x, count);
  std::printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
  cudaFree(x);
}
