// With EMULATOR_DEVICES=2: uses memory and a stream of another device.
#include <cstdio>

__global__ void fill(int* x) { x[threadIdx.x] = 7; }

int main() {
  int* x;
  cudaStream_t stream;
  cudaMalloc(&x, 32 * sizeof(int));
  cudaStreamCreate(&stream);
  cudaSetDevice(1);
  fill<<<1, 32, 0, stream>>>(x);
  printf("%s\n", cudaGetErrorString(cudaGetLastError()));
  fill<<<1, 32>>>(x);
  printf("%s\n", cudaGetErrorString(cudaDeviceSynchronize()));
}
