// A barrier between more blocks than run at once.
__global__ void meet(unsigned* arrived) {
  if (threadIdx.x == 0) atomicAdd(arrived, 1);
  while (atomicAdd(arrived, 0) < gridDim.x) {
  }
}
int main() {
  unsigned* arrived;
  cudaMalloc(&arrived, sizeof(unsigned));
  cudaMemset(arrived, 0, sizeof(unsigned));
  meet<<<100, 1024>>>(arrived);
  cudaDeviceSynchronize();
  cudaFree(arrived);
}
