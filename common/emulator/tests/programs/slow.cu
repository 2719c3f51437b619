// Takes some seconds: many blocks of many accesses.
#include <cstdlib>

__global__ void write_often(volatile int* out, int times) {
  for (int i = 0; i < times; i++) out[blockIdx.x] = i;
}

int main(int, char** words) {
  int* out;
  cudaMalloc(&out, 10000 * sizeof(int));
  write_often<<<10000, 1>>>(out, std::atoi(words[1]));
  cudaDeviceSynchronize();
  cudaFree(out);
}
