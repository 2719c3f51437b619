#include <cstdio>
__global__ void scale(int* x, int n) {
  if (threadIdx.x < n) x[threadIdx.x] *= 2;
}
int main() {
  int *d_x, *h_x;
  cudaStream_t copies, kernels;
  cudaStreamCreate(&copies);
  cudaStreamCreate(&kernels);
  cudaMalloc(&d_x, 32 * sizeof(int));
  cudaMallocHost(&h_x, 32 * sizeof(int));
  for (int i = 0; i < 32; i++) h_x[i] = i;
  cudaMemset(d_x, 0, 32 * sizeof(int));
  cudaMemcpyAsync(d_x, h_x, 32 * sizeof(int), cudaMemcpyHostToDevice, copies);
  scale<<<1, 32, 0, kernels>>>(d_x, 32);
  cudaStreamSynchronize(kernels);
  cudaStreamSynchronize(copies);
  cudaMemcpy(h_x, d_x, 32 * sizeof(int), cudaMemcpyDeviceToHost);
  printf("%d\n", h_x[3]);
  cudaFree(d_x);
  cudaFreeHost(h_x);
  cudaStreamDestroy(copies);
  cudaStreamDestroy(kernels);
}
