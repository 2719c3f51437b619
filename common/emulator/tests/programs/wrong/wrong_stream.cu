#include <cstdio>
__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int *d_x, h_x[32] = {};
  cudaStream_t stream;
  cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking);
  cudaMalloc(&d_x, sizeof(h_x));
  cudaMemset(d_x, 0, sizeof(h_x));
  fill<<<1, 32, 0, stream>>>(d_x);
  cudaMemcpy(h_x, d_x, sizeof(h_x), cudaMemcpyDeviceToHost);
  printf("%d\n", h_x[0]);
  cudaStreamSynchronize(stream);
  cudaStreamDestroy(stream);
  cudaFree(d_x);
  return h_x[0] == 7 ? 0 : 1;
}
