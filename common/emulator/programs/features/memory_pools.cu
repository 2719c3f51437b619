// Memory: allocation in a stream's order, and memory pools
// Support: approximate: no address is used again, so the attributes about reuse have no effect
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

__global__ void fill(int* x, int value) { x[threadIdx.x] = value; }

static int expect_equal(const char* what, uint64_t got, uint64_t expected) {
  if (got == expected) return 0;
  fprintf(stderr, "%s: got %llu, expected %llu\n", what, (unsigned long long)got,
          (unsigned long long)expected);
  return 1;
}

static uint64_t attribute_of(cudaMemPool_t pool, cudaMemPoolAttr attribute) {
  uint64_t value = 0;
  cudaMemPoolGetAttribute(pool, attribute, &value);
  return value;
}

int main() {
  cudaMemPoolProps properties = {};
  properties.allocType = cudaMemAllocationTypePinned;
  properties.location.type = cudaMemLocationTypeDevice;
  properties.location.id = 0;
  cudaMemPool_t pool, usual, current;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  int wrong = expect_equal("create", cudaMemPoolCreate(&pool, &properties), cudaSuccess);
  uint64_t threshold = UINT64_MAX;
  cudaMemPoolSetAttribute(pool, cudaMemPoolAttrReleaseThreshold, &threshold);

  int *x, *y, results[32];
  wrong += expect_equal("allocate", cudaMallocFromPoolAsync(&x, 32 * sizeof(int), pool, stream), cudaSuccess);
  fill<<<1, 32, 0, stream>>>(x, 7);
  cudaMemcpyAsync(results, x, sizeof(results), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  wrong += expect_equal("used", attribute_of(pool, cudaMemPoolAttrUsedMemCurrent) >= sizeof(results), 1);
  cudaFreeAsync(x, stream);
  cudaStreamSynchronize(stream);
  for (int result : results) wrong += expect_equal("result", result, 7);
  wrong += expect_equal("used after the free", attribute_of(pool, cudaMemPoolAttrUsedMemCurrent), 0);
  wrong +=
      expect_equal("reserved", attribute_of(pool, cudaMemPoolAttrReservedMemCurrent) >= sizeof(results), 1);
  wrong += expect_equal("trim", cudaMemPoolTrimTo(pool, 0), cudaSuccess);
  wrong += expect_equal("reserved after the trim", attribute_of(pool, cudaMemPoolAttrReservedMemCurrent), 0);

  // cudaMallocAsync takes from the current pool of the device.
  cudaDeviceGetDefaultMemPool(&usual, 0);
  cudaDeviceSetMemPool(0, pool);
  cudaDeviceGetMemPool(&current, 0);
  wrong += expect_equal("another pool is current", current == pool && usual != pool, 1);
  cudaMallocAsync(&y, 1024, stream);
  wrong +=
      expect_equal("used by the current pool", attribute_of(pool, cudaMemPoolAttrUsedMemCurrent) >= 1024, 1);
  cudaFreeAsync(y, stream);
  cudaStreamSynchronize(stream);
  cudaDeviceSetMemPool(0, usual);
  wrong += expect_equal("destroy", cudaMemPoolDestroy(pool), cudaSuccess);
  cudaStreamDestroy(stream);
  return wrong != 0;
}
