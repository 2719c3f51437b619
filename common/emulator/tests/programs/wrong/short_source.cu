#include <cstdlib>
#include <sys/mman.h>
int main() {
  int* d_x;
  char* page = (char*)mmap(nullptr, 65536, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  munmap(page + 32768, 32768);
  cudaMalloc(&d_x, 65536);
  cudaMemcpy(d_x, page, 65536, cudaMemcpyHostToDevice);
  cudaFree(d_x);
}
