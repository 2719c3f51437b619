__global__ void fill(int* x) { x[threadIdx.x] = 7; }
int main() {
  int* h_x = new int[32];
  fill<<<1, 32>>>(h_x);
  cudaDeviceSynchronize();
  delete[] h_x;
}
