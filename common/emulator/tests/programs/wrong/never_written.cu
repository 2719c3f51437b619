__global__ void fill(int* y, int* flag, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 7;
  *flag = 1;
}
int main() {
  int *d_y, *h_flag, h[33];
  cudaMalloc(&d_y, sizeof(h));
  cudaMallocHost(&h_flag, sizeof(int));
  fill<<<1, 1>>>(d_y, h_flag, 33);
  cudaMemcpy(h, d_y, sizeof(h), cudaMemcpyDeviceToHost);
}
