__global__ void wait(volatile int* flag) {
  while (!*flag) {
  }
}
int main() {
  int* d_flag;
  cudaMalloc(&d_flag, sizeof(int));
  cudaMemset(d_flag, 0, sizeof(int));
  wait<<<1, 1>>>(d_flag);
  cudaDeviceSynchronize();
}
