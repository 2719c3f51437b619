__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int* d_x;
  cudaMalloc(&d_x, 32 * sizeof(int));
  cudaFree(d_x);
  fill<<<1, 32>>>(d_x);
  cudaDeviceSynchronize();
}
