// Device code: printf and assert
// Support: yes
#include <cuda_runtime.h>

#include <cassert>
#include <cstdio>

__global__ void check_and_print(const int* x, int count) {
  const int i = threadIdx.x;
  assert(i < count && "more threads than elements");
  if (x[i] < 0) printf("element %d is negative: %d (%s, %5.2f)\n", i, x[i], "unexpected", 0.5 * x[i]);
  assert(x[i] >= 0);
}

int main() {
  constexpr int count = 32;
  int *x, values[count];
  for (int i = 0; i < count; i++) values[i] = i;
  cudaMalloc(&x, sizeof(values));
  cudaMemcpy(x, values, sizeof(values), cudaMemcpyHostToDevice);
  check_and_print<<<1, count>>>(x, count);
  if (const cudaError_t error = cudaDeviceSynchronize())
    return fprintf(stderr, "the kernel failed: %s\n", cudaGetErrorString(error)), 1;
  cudaFree(x);
  return 0;
}
