__global__ void sum(int* x) {
  if (threadIdx.x < 16) x[0] = __reduce_add_sync(0xffffffff, x[threadIdx.x]);
  __syncthreads();
}
int main() {
  int* x;
  cudaMalloc(&x, 32 * sizeof(int));
  cudaMemset(x, 0, 32 * sizeof(int));
  sum<<<1, 32>>>(x);
  cudaDeviceSynchronize();
  cudaFree(x);
}
