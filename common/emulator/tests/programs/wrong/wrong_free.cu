#include <cstdlib>
int main() {
  int *d_x, *h_x, *plain = (int*)malloc(64);
  cudaMalloc(&d_x, 1024);
  cudaMallocHost(&h_x, 1024);
  cudaFree(plain);
  cudaFree(d_x + 4);
  cudaFreeHost(d_x);
  cudaFree(h_x);
  cudaFree(d_x);
  cudaFreeHost(h_x);
  free(plain);
}
