__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  fill<<<1, 32>>>(nullptr);
  cudaDeviceSynchronize();
}
