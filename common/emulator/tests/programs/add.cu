// The usual first CUDA program. The number of elements is an argument.
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

__global__ void add(float* z, const float* x, const float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) z[i] = x[i] + y[i];
}

int main(int argc, char** argv) {
  const int n = argc > 1 ? std::atoi(argv[1]) : 1000;
  const size_t bytes = n * sizeof(float);
  std::vector<float> x(n, 1), y(n, 2), z(n);
  float *d_x, *d_y, *d_z;
  cudaMalloc(&d_x, bytes);
  cudaMalloc((void**)&d_y, bytes);
  cudaMalloc(reinterpret_cast<void**>(&d_z), bytes);
  cudaMemcpy(d_x, x.data(), bytes, cudaMemcpyHostToDevice);
  cudaMemcpy(d_y, y.data(), bytes, cudaMemcpyDefault);
  add<<<(n + 255) / 256, 256>>>(d_z, d_x, d_y, n);
  cudaMemcpy(z.data(), d_z, bytes, cudaMemcpyDeviceToHost);
  printf("z[%d] = %g: %s\n", n - 1, z[n - 1], cudaGetErrorString(cudaGetLastError()));
  cudaFree(d_x);
  cudaFree(d_y);
  cudaFree(d_z);
  return z[n - 1] == 3 ? 0 : 1;
}
