__global__ void fill(int* x) { x[threadIdx.x] = 1; }
int main() {
  int* x;
  cudaMalloc(&x, size_t(1) << 45);
  fill<<<1, 32>>>(x);
  cudaDeviceSynchronize();
}
