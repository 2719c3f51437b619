// Inline PTX: mbarrier, with arrivals, parities, and copies that arrive at it
// Support: yes
#include <cstdint>
#include <cstdio>

constexpr int kThreads = 64, kConsumers = 32, kSteps = 6;

__device__ uint32_t address_of(const void* shared) { return uint32_t(__cvta_generic_to_shared(shared)); }

__device__ void arrive(uint32_t barrier) {
  asm volatile("{\n\t.reg .b64 state;\n\tmbarrier.arrive.shared::cta.b64 state, [%0];\n\t}" ::"r"(barrier)
               : "memory");
}

__device__ void wait(uint32_t barrier, uint32_t parity) {
  asm volatile(
      "{\n\t"
      ".reg .pred is_done;\n"
      "WAIT:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 is_done, [%0], %1;\n\t"
      "@is_done bra DONE;\n\t"
      "bra WAIT;\n"
      "DONE:\n\t}" ::"r"(barrier),
      "r"(parity)
      : "memory");
}

// One warp fills a buffer, the other one reads it: `full` and `empty` take turns.
__global__ void pass_on(int* out) {
  __shared__ int buffer[kConsumers];
  __shared__ alignas(8) uint64_t full, empty;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(&full)), "r"(kConsumers));
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(&empty)), "r"(kConsumers));
  }
  __syncthreads();
  const int i = threadIdx.x % 32;
  for (int step = 0; step < kSteps; step++)
    if (threadIdx.x < 32) {
      wait(address_of(&empty), (step & 1) ^ 1);  // the first time, the phase before the first is complete
      buffer[i] = 100 * step + i;
      arrive(address_of(&full));
    } else {
      wait(address_of(&full), step & 1);
      out[step * kConsumers + i] = buffer[31 - i];
      arrive(address_of(&empty));
    }
}

// The barrier also waits for the copies of all threads.
__global__ void copy(int* out, const int* in) {
  __shared__ alignas(16) int tile[4 * kThreads];
  __shared__ alignas(8) uint64_t arrived;
  if (threadIdx.x == 0)
    asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(address_of(&arrived)), "r"(blockDim.x));
  __syncthreads();
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(address_of(tile + 4 * threadIdx.x)),
               "l"(in + 4 * threadIdx.x)
               : "memory");
  asm volatile("cp.async.mbarrier.arrive.noinc.shared.b64 [%0];" ::"r"(address_of(&arrived)) : "memory");
  wait(address_of(&arrived), 0);
  out[threadIdx.x] = tile[4 * kThreads - 1 - threadIdx.x];
}

int main() {
  int *passed, *in, *copied;
  cudaMallocManaged(&passed, kSteps * kConsumers * sizeof(int));
  cudaMallocManaged(&in, 4 * kThreads * sizeof(int));
  cudaMallocManaged(&copied, kThreads * sizeof(int));
  for (int i = 0; i < 4 * kThreads; i++) in[i] = 3 * i;
  pass_on<<<1, kThreads>>>(passed);
  copy<<<1, kThreads>>>(copied, in);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int step = 0; step < kSteps; step++)
    for (int i = 0; i < kConsumers; i++) {
      const int got = passed[step * kConsumers + i], expected = 100 * step + 31 - i;
      if (got != expected && !wrong++)
        std::fprintf(stderr, "step %d: got %d, expected %d\n", step, got, expected);
    }
  for (int i = 0; i < kThreads; i++) {
    const int expected = 3 * (4 * kThreads - 1 - i);
    if (copied[i] != expected && !wrong++)
      std::fprintf(stderr, "copy: got %d, expected %d\n", copied[i], expected);
  }
  for (void* memory : {(void*)passed, (void*)in, (void*)copied}) cudaFree(memory);
  return wrong != 0;
}
