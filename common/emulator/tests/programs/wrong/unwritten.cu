__global__ void fill(int* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 7;
}
int main() {
  int *d_x, *d_y, h[32];
  cudaMalloc(&d_x, sizeof(h));
  cudaMalloc(&d_y, sizeof(h));
  fill<<<1, 32>>>(d_y, 31);
  cudaMemcpy(h, d_x, sizeof(h), cudaMemcpyDeviceToHost);
  cudaMemcpy(h, d_y, sizeof(h), cudaMemcpyDeviceToHost);
  cudaFree(d_x);
  cudaFree(d_y);
}
