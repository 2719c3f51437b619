__global__ void step(float* x) { x[threadIdx.x] += 1; }
int main() {
  float* x;
  cudaMalloc(&x, 256 * sizeof(float));
  cudaMemset(x, 0, 256 * sizeof(float));
  for (;;) {
    step<<<1, 256>>>(x);
    cudaDeviceSynchronize();
  }
}
