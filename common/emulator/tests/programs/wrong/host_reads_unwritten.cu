#include <cstdio>
__global__ void fill(int* y, int n) {
  if (threadIdx.x < n) y[threadIdx.x] = 7;
}
int main() {
  int *managed, *mapped, *later, *filled;
  cudaMallocManaged(&managed, 128);
  cudaHostAlloc(&mapped, 128, cudaHostAllocMapped);
  cudaMallocManaged(&later, 128);
  cudaMallocManaged(&filled, 128);
  for (int* one : {managed, mapped, later, filled}) fill<<<1, 32>>>(one, one == filled);
  cudaDeviceSynchronize();
  const bool is_zero = managed[3] == 0;
  const int sum = mapped[5] + mapped[6];
  for (int i = 0; i < 32; i++) later[i] = filled[0];  // the host may write it, and then read it
  std::printf("%d %d %d\n", is_zero, sum == 0, later[31]);
  for (int* one : {managed, later, filled}) cudaFree(one);
  cudaFreeHost(mapped);
}
