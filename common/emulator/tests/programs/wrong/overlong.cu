int main() {
  int *d_x, h_x[200] = {};
  cudaMalloc(&d_x, 100 * sizeof(int));
  cudaMemcpy(d_x, h_x, sizeof(h_x), cudaMemcpyHostToDevice);
  cudaMemset(d_x + 50, 0, 100 * sizeof(int));
  cudaFree(d_x);
}
