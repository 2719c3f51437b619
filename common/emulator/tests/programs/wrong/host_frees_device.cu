#include <cstdlib>
int main() {
  int* d_x;
  cudaMalloc(&d_x, 1024);
  free(d_x);
}
