#include <cstdio>
__device__ int deepest;
__device__ cudaError_t error_of_deepest;
__global__ void nest(int depth) {
  nest<<<1, 1>>>(depth + 1);
  const cudaError_t error = cudaGetLastError();
  if (error == cudaSuccess) return;
  deepest = depth;
  error_of_deepest = error;
}
int main() {
  nest<<<1, 1>>>(0);
  cudaDeviceSynchronize();
  int depth;
  cudaError_t error;
  cudaMemcpyFromSymbol(&depth, deepest, sizeof depth);
  cudaMemcpyFromSymbol(&error, error_of_deepest, sizeof error);
  std::printf("%d deep, then %s\n", depth, cudaGetErrorName(error));
  std::printf("the host: %s\n", cudaGetErrorName(cudaGetLastError()));
}
