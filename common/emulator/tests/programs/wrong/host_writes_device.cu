#include <cstring>
int main() {
  int* d_x;
  cudaMalloc(&d_x, 1024);
  memset(d_x, 0, 1024);
  cudaFree(d_x);
}
