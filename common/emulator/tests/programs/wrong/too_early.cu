#include <cstdio>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int *d_x, *h_x;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  cudaMalloc(&d_x, 32 * sizeof(int));
  cudaMallocHost(&h_x, 32 * sizeof(int));
  h_x[0] = 0;
  fill<<<1, 32, 0, stream>>>(d_x);
  cudaMemcpyAsync(h_x, d_x, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream);
  printf("too early: %d\n", h_x[0]);
  cudaStreamSynchronize(stream);
  printf("in time: %d\n", h_x[0]);
  cudaStreamDestroy(stream);
  cudaFreeHost(h_x);
  cudaFree(d_x);
}
