// Device code: clock and clock64
// Support: approximate: they count nanoseconds of the emulator, not cycles of a GPU
#include <cuda_runtime.h>

#include <cstdio>

__global__ void measure(long long* cycles, float* x) {
  const clock_t begin = clock();
  const long long begin64 = clock64();
  for (int i = 0; i < 100; i++) x[threadIdx.x] = x[threadIdx.x] * 0.5f + 1;
  const long long end64 = clock64();
  const clock_t end = clock();
  cycles[2 * threadIdx.x] = end64 - begin64;
  cycles[2 * threadIdx.x + 1] = end - begin;
}

int main() {
  long long* cycles;
  float* x;
  cudaMallocManaged(&cycles, 8 * sizeof(long long));
  cudaMallocManaged(&x, 4 * sizeof(float));
  for (int i = 0; i < 4; i++) x[i] = 0;
  measure<<<1, 4>>>(cycles, x);
  if (cudaDeviceSynchronize()) return fprintf(stderr, "the kernel failed\n"), 1;
  for (int i = 0; i < 8; i++)
    if (cycles[i] <= 0)
      return fprintf(stderr, "time %d: got %lld, expected a positive number\n", i, cycles[i]), 1;
  cudaFree(cycles);
  cudaFree(x);
  return 0;
}
