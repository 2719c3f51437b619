// Language: __CUDA_ARCH__ in device code, and __CUDACC__
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>

#define HD __host__ __device__

#ifndef __CUDACC__
#error "nvcc defines this macro"
#endif

// Older devices have no atomic addition of doubles.
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 600
#else
__device__ double atomicAdd(double* address, double value) {
  unsigned long long *bits = reinterpret_cast<unsigned long long*>(address), old = *bits, assumed;
  do {
    assumed = old;
    old = atomicCAS(bits, assumed, __double_as_longlong(value + __longlong_as_double(assumed)));
  } while (assumed != old);
  return __longlong_as_double(old);
}
#endif

// The device version and the host version of one function.
HD inline int side() {
#ifdef __CUDA_ARCH__
  return __CUDA_ARCH__;
#else
  return -1;
#endif
}

template <typename T>
struct Counter {
  T value;
  __host__ __device__ void count() {
#if defined(__CUDA_ARCH__)
    atomicAdd(&value, T(1));
#else
    value += 1;
#endif
  }
};

__global__ void kernel(int* results, Counter<double>* counter) {
  counter->count();
  if (threadIdx.x) return;
  results[0] = side();
#if __CUDA_ARCH__ >= 700
  results[1] = 1;
#else
  results[1] = 0;
#endif
}

static int expect_equal(const char* what, int got, int expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %d, expected %d\n", what, got, expected), 1;
}

int main() {
  int* results;
  Counter<double>* counter;
  cudaMallocManaged(&results, 2 * sizeof(int));
  cudaMallocManaged(&counter, sizeof(*counter));
  counter->value = 0;
  counter->count();
  kernel<<<1, 64>>>(results, counter);
  if (cudaDeviceSynchronize()) return fprintf(stderr, "the kernel failed\n"), 1;
  int wrong = expect_equal("the device's side", results[0], 900);
  wrong += expect_equal("the device's branch", results[1], 1);
  wrong += expect_equal("the host's side", side(), -1);
  wrong += expect_equal("the counter", int(counter->value), 65);
#ifdef __CUDA_ARCH__
  wrong += expect_equal("main is device code", 1, 0);
#endif
  cudaFree(results);
  cudaFree(counter);
  return wrong != 0;
}
