int main() {
  int* d_x;
  cudaMalloc(&d_x, 1024);
  cudaFree(d_x);
  cudaFree(d_x);
}
