// Memory: managed memory that host and kernels use at once, by system-wide atomics or volatile accesses
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>

// Each thread counts in an element that the host counts in, too.
__global__ void count(int* counter) { atomicAdd_system(counter, 1); }

// Stores its results, and then sets a flag that the host is waiting for.
__global__ void square(int* squares, volatile int* is_done) {
  squares[threadIdx.x] = threadIdx.x * threadIdx.x;
  __threadfence_system();
  __syncthreads();
  if (threadIdx.x == 0) *is_done = 1;
}

// Waits until the host has set a flag.
__global__ void answer(int* out, volatile int* question) {
  while (*question == 0) {
  }
  *out = *question + 1;
}

int* managed(int count) {
  int* array;
  if (cudaMallocManaged(&array, count * sizeof(int)) != cudaSuccess) return nullptr;
  for (int i = 0; i < count; i++) array[i] = 0;
  return array;
}

bool is(const char* what, int got, int expected) {
  if (got != expected) std::fprintf(stderr, "%s: got %d, expected %d\n", what, got, expected);
  return got == expected;
}

int main() {
  int *counter = managed(1), *squares = managed(32), *is_done = managed(1), *out = managed(1),
      *question = managed(1);

  count<<<4, 64>>>(counter);
  for (int i = 0; i < 100; i++) __atomic_fetch_add(counter, 1, __ATOMIC_SEQ_CST);
  cudaDeviceSynchronize();
  if (!is("counter", *counter, 4 * 64 + 100)) return 1;

  square<<<1, 32>>>(squares, is_done);
  while (*static_cast<volatile int*>(is_done) == 0) {
  }
  if (!is("squares[31]", squares[31], 31 * 31)) return 1;

  answer<<<1, 1>>>(out, question);
  *static_cast<volatile int*>(question) = 41;
  cudaDeviceSynchronize();
  if (!is("out", *out, 42)) return 1;

  for (int* array : {counter, squares, is_done, out, question}) cudaFree(array);
  return 0;
}
