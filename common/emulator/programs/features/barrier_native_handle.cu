// libcu++: cuda::device::barrier_native_handle, the hardware's form of a barrier
// Support: refused: the emulator does not support cuda::device::barrier_native_handle
#include <cuda/barrier>

__global__ void handle(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> barrier;
  if (threadIdx.x == 0) init(&barrier, blockDim.x);
  __syncthreads();
  *out = cuda::device::barrier_native_handle(barrier) != nullptr;
}

int main() {
  int* out;
  cudaMalloc(&out, sizeof(int));
  handle<<<1, 32>>>(out);
  cudaDeviceSynchronize();
  cudaFree(out);
}
