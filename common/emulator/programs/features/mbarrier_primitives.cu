// libcu++: barriers in shared memory by the primitives of cuda_awbarrier_primitives.h
// Support: yes
#include <cuda_awbarrier_primitives.h>

#include <cstdio>

// Each half of the block fills its part of the buffer, and reads that of the other.
__global__ void exchange(int* out, int steps) {
  __shared__ __mbarrier_t barrier;
  __shared__ int buffer[2][64];
  if (threadIdx.x == 0) __mbarrier_init(&barrier, blockDim.x);
  __syncthreads();
  int sum = 0;
  for (int step = 0; step < steps; step++) {
    buffer[step % 2][threadIdx.x] = 100 * step + threadIdx.x;
    const __mbarrier_token_t token = __mbarrier_arrive(&barrier);
    if (step % 2) {
      while (!__mbarrier_try_wait(&barrier, token, 1000)) {
      }
    } else {
      while (!__mbarrier_test_wait_parity(&barrier, step % 2)) {
      }
    }
    sum += buffer[step % 2][63 - threadIdx.x];
  }
  out[threadIdx.x] = sum;
  __syncthreads();
  if (threadIdx.x == 0) __mbarrier_inval(&barrier);
}

int main() {
  constexpr int kSteps = 5;
  int *out, got[64];
  cudaMalloc(&out, sizeof(got));
  exchange<<<1, 64>>>(out, kSteps);
  cudaMemcpy(got, out, sizeof(got), cudaMemcpyDeviceToHost);
  for (int t = 0; t < 64; t++)
    if (got[t] != 1000 + kSteps * (63 - t))
      return std::fprintf(stderr, "sum %d is %d, expected %d\n", t, got[t], 1000 + kSteps * (63 - t)), 1;
  cudaFree(out);
}
