// Runtime API: launches by address (cudaLaunchKernel), attributes of kernels, occupancy
// Support: approximate: kernels use no registers; cudaFuncSetAttribute applies to a template as a whole
#include <cuda_runtime.h>

#include <cstdio>

__global__ void scale(float* values, const float factor, int count) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) values[i] *= factor;
}

template <typename T>
__global__ void fill(T* values, T value) {
  extern __shared__ unsigned char copies[];
  T* copy = reinterpret_cast<T*>(copies);
  copy[threadIdx.x] = value;
  __syncthreads();
  values[blockIdx.x * blockDim.x + threadIdx.x] = copy[blockDim.x - 1 - threadIdx.x];
}

// The bytes of shared memory that a block of this size needs.
__host__ __device__ size_t shared_of(int threads) { return threads * sizeof(float); }

static int expect_equal(const char* what, double got, double expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected), 1;
}

int main() {
  constexpr int count = 1024;
  float *values, results[count];
  cudaMalloc(&values, sizeof(results));

  // The most threads whose shared memory, of 4 bytes each, fits.
  int grid, threads, blocks, wrong = 0;
  wrong += expect_equal(
      "potential block size",
      cudaOccupancyMaxPotentialBlockSizeVariableSMem(&grid, &threads, fill<float>, shared_of), cudaSuccess);
  wrong += expect_equal("whole warps", threads % 32, 0);
  cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(&blocks, (const void*)fill<float>, 128, 512,
                                                         cudaOccupancyDefault);
  wrong += expect_equal("some blocks", blocks >= 1, 1);
  size_t available;
  cudaOccupancyAvailableDynamicSMemPerBlock(&available, fill<float>, 2, 128);
  wrong += expect_equal("shared memory for two blocks", available >= 48 << 10, 1);

  const int large = 64 << 10;
  wrong += expect_equal(
      "more shared memory",
      cudaFuncSetAttribute((const void*)fill<float>, cudaFuncAttributeMaxDynamicSharedMemorySize, large), 0);
  cudaFuncAttributes attributes;
  cudaFuncGetAttributes(&attributes, fill<float>);
  wrong += expect_equal("allowed shared memory", attributes.maxDynamicSharedSizeBytes, large);

  float value = 3, factor = 0.5f;
  int number = count;
  void* of_fill[] = {&values, &value};
  void* of_scale[] = {&values, &factor, &number};
  wrong += expect_equal("launch", cudaLaunchKernel((void*)fill<float>, dim3(4), dim3(256), of_fill, large, 0),
                        cudaSuccess);
  void (*typed)(float*, float, int) = scale;
  wrong += expect_equal("launch", cudaLaunchKernel(typed, 4, 256, of_scale), cudaSuccess);
  cudaMemcpy(results, values, sizeof(results), cudaMemcpyDeviceToHost);
  for (int i = 0; i < count; i++) wrong += expect_equal("result", results[i], 1.5);
  cudaFree(values);
  return wrong != 0;
}
