// Queries that programs make at the start, and errors by their names.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define EXPECT(condition)                                    \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("line %d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                               \
    }                                                        \
  } while (0)

__global__ void kernel(int* x) { x[threadIdx.x] = 1; }

int main() {
  int count, device, value, version;
  cudaDeviceProp properties;
  EXPECT(cudaGetDeviceCount(&count) == cudaSuccess && count >= 1);
  EXPECT(cudaSetDevice(0) == cudaSuccess);
  EXPECT(cudaGetDevice(&device) == cudaSuccess && device == 0);
  EXPECT(cudaGetDeviceProperties(&properties, 0) == cudaSuccess);
  printf("%s\n", properties.name);
  EXPECT(properties.warpSize == 32 && properties.maxThreadsPerBlock == 1024 && properties.major >= 7);
  EXPECT(cudaDeviceGetAttribute(&value, cudaDevAttrMultiProcessorCount, 0) == cudaSuccess);
  EXPECT(value == properties.multiProcessorCount);
  EXPECT(cudaRuntimeGetVersion(&version) == cudaSuccess && version >= 12000);

  int blocks, grid, threads;
  EXPECT(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, 256, 0) == cudaSuccess);
  EXPECT(blocks >= 1 && blocks * 256 <= properties.maxThreadsPerMultiProcessor);
  EXPECT(cudaOccupancyMaxPotentialBlockSize(&grid, &threads, kernel, 0, 0) == cudaSuccess);
  EXPECT(grid >= 1 && threads >= 32);
  cudaFuncAttributes attributes;
  EXPECT(cudaFuncGetAttributes(&attributes, kernel) == cudaSuccess && attributes.maxThreadsPerBlock > 0);
  EXPECT(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 << 10) == cudaSuccess);
  EXPECT(cudaFuncSetCacheConfig(kernel, cudaFuncCachePreferL1) == cudaSuccess);
  size_t limit;
  EXPECT(cudaDeviceSetLimit(cudaLimitPrintfFifoSize, 1 << 21) == cudaSuccess);
  EXPECT(cudaDeviceGetLimit(&limit, cudaLimitPrintfFifoSize) == cudaSuccess && limit >= 1 << 21);

  EXPECT(cudaDeviceSetLimit(cudaLimitDevRuntimeSyncDepth, 4) == cudaErrorUnsupportedLimit);
  EXPECT(cudaGetLastError() == cudaErrorUnsupportedLimit);

  // An error stays the last error until the program reads it.
  void* memory;
  EXPECT(cudaMalloc(&memory, size_t(1) << 60) == cudaErrorMemoryAllocation);
  EXPECT(cudaPeekAtLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaErrorMemoryAllocation);
  EXPECT(cudaGetLastError() == cudaSuccess);
  EXPECT(cudaSetDevice(count) == cudaErrorInvalidDevice);
  EXPECT(!strcmp(cudaGetErrorName(cudaErrorInvalidDevice), "cudaErrorInvalidDevice"));
  EXPECT(!strcmp(cudaGetErrorString(cudaErrorIllegalAddress), "an illegal memory access was encountered"));
  EXPECT(!strcmp(cudaGetErrorName(cudaError_t(12345)), "unrecognized error code"));
  EXPECT(cudaGetLastError() == cudaErrorInvalidDevice);
  printf("as it should be\n");
  return 3;
}
