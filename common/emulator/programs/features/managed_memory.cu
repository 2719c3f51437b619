// Memory: managed memory and __managed__ variables, prefetch and advice, references as parameters of kernels
// Support: approximate: prefetch and advice have no effect
#include <cuda_runtime.h>

#include <cstdio>

__managed__ int total = 5;
__device__ __managed__ float table[4] = {1, 2, 3, 4};

__global__ void set(int& answer, const float& factor) {
  answer = 42;
  atomicAdd(&total, 1);
  table[threadIdx.x] *= factor;
}

__global__ void add_mapped(const int* mapped, int* sum) { atomicAdd(sum, mapped[threadIdx.x]); }

static int expect_equal(const char* what, double got, double expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected), 1;
}

int main() {
  int *answer, wrong = 0;
  float* factor;
  cudaMallocManaged(&answer, sizeof(int));
  cudaMallocManaged((void**)&factor, sizeof(float), cudaMemAttachGlobal);
  *answer = 1;
  *factor = 10;
  const cudaMemLocation device = {cudaMemLocationTypeDevice, 0}, host = {cudaMemLocationTypeHost, 0};
  wrong +=
      expect_equal("advice", cudaMemAdvise(factor, sizeof(float), cudaMemAdviseSetReadMostly, device), 0);
  wrong += expect_equal("prefetch", cudaMemPrefetchAsync(answer, sizeof(int), device, 0), 0);
  set<<<1, 4>>>(*answer, *factor);
  wrong += expect_equal("prefetch", cudaMemPrefetchAsync(answer, sizeof(int), host, 0), 0);
  wrong += expect_equal("launch", cudaDeviceSynchronize(), cudaSuccess);
  wrong += expect_equal("the reference", *answer, 42);
  wrong += expect_equal("the __managed__ variable", total, 9);
  for (int i = 0; i < 4; i++) wrong += expect_equal("the __managed__ array", table[i], 10 * (i + 1));

  // Zero-copy: the kernel reads the host's own memory.
  int* mapped;
  cudaHostAlloc(&mapped, 8 * sizeof(int), cudaHostAllocMapped | cudaHostAllocWriteCombined);
  for (int i = 0; i < 8; i++) mapped[i] = i;
  int* on_device;
  unsigned flags;
  cudaHostGetDevicePointer(&on_device, mapped, 0);
  cudaHostGetFlags(&flags, mapped);
  wrong += expect_equal("flags", flags, cudaHostAllocMapped | cudaHostAllocWriteCombined);
  add_mapped<<<1, 8>>>(on_device, &total);
  cudaDeviceSynchronize();
  wrong += expect_equal("the sum", total, 9 + 28);

  cudaPointerAttributes attributes;
  cudaPointerGetAttributes(&attributes, &total);
  wrong += expect_equal("memory type", attributes.type, cudaMemoryTypeManaged);
  cudaFreeHost(mapped);
  cudaFree(answer);
  cudaFree(factor);
  return wrong != 0;
}
