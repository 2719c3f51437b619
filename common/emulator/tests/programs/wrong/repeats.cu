__global__ void copy(float* out, const float* x) { out[threadIdx.x] = x[threadIdx.x]; }
__global__ void fill(float* x) { x[threadIdx.x] = 1; }
int main() {
  for (int pass = 0; pass < 5; pass++) {
    float *x, *out;
    cudaMalloc(&x, 32 * sizeof(float));
    cudaMalloc(&out, 32 * sizeof(float));
    copy<<<1, 32>>>(out, x);
    cudaFree(x);
    cudaFree(out);
  }
  float* x;
  cudaMalloc(&x, 32 * sizeof(float));
  fill<<<1, 33>>>(x);
  cudaDeviceSynchronize();
  fill<<<1, 33>>>(x);
  cudaDeviceSynchronize();
}
