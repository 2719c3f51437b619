// Inline PTX: barriers by number (bar.sync, bar.arrive), of some warps of a block
// Support: yes
#include <cstdio>

constexpr int kProducers = 32, kConsumers = 64, kSteps = 4, kFull = 1, kEmpty = 2, kOnlyConsumers = 3;

template <int barrier>
__device__ void wait_for_all() {
  asm volatile("bar.sync %0, %1;" ::"n"(barrier), "n"(kProducers + kConsumers) : "memory");
}
template <int barrier>
__device__ void arrive() {
  asm volatile("bar.arrive %0, %1;" ::"n"(barrier), "n"(kProducers + kConsumers) : "memory");
}

// One warp fills a buffer, and two warps read it. Who arrives need not wait.
__global__ void pass_on(int* out) {
  __shared__ int buffer[kConsumers], sums[kConsumers];
  const int i = threadIdx.x - kProducers;
  for (int step = 0; step < kSteps; step++)
    if (threadIdx.x < kProducers) {
      if (step) wait_for_all<kEmpty>();
      for (int j = threadIdx.x; j < kConsumers; j += kProducers) buffer[j] = 10 * step + j;
      arrive<kFull>();
    } else {
      wait_for_all<kFull>();
      sums[i] = buffer[i] + buffer[kConsumers - 1 - i];
      if (step + 1 < kSteps) arrive<kEmpty>();
      asm volatile("barrier.sync.aligned 3, 64;" ::: "memory");
      out[step * kConsumers + i] = sums[(i + 1) % kConsumers];
      asm volatile("barrier.sync.aligned %0, %1;" ::"r"(kOnlyConsumers), "r"(kConsumers) : "memory");
    }
}

int main() {
  int* out;
  cudaMallocManaged(&out, kSteps * kConsumers * sizeof(int));
  pass_on<<<1, kProducers + kConsumers>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int step = 0; step < kSteps; step++)
    for (int i = 0; i < kConsumers; i++) {
      const int got = out[step * kConsumers + i], expected = 20 * step + kConsumers - 1;
      if (got != expected && !wrong++)
        std::fprintf(stderr, "step %d: got %d, expected %d\n", step, got, expected);
    }
  cudaFree(out);
  return wrong != 0;
}
