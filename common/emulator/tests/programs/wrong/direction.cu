int main() {
  int *d_x, h_x[64] = {};
  cudaMalloc(&d_x, sizeof(h_x));
  cudaMemcpy(h_x, d_x, sizeof(h_x), cudaMemcpyHostToDevice);
  cudaMemcpy(d_x, h_x, sizeof(h_x), cudaMemcpyDeviceToHost);
  cudaMemset(h_x, 0, sizeof(h_x));
  cudaMemcpy(nullptr, h_x, sizeof(h_x), cudaMemcpyHostToDevice);
  cudaFree(d_x);
}
