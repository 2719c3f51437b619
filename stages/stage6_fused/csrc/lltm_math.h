// The gate functions and their derivatives. Each derivative is computed from the function's output, which the
// backward pass already has, so it needs no further exponential.
#pragma once

#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#else  // g++ alone: a machine without CUDA builds for the CPU
#define __host__
#define __device__
#define __forceinline__ inline
#endif

#include <cmath>

template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t sigmoid(scalar_t z) {
  return 1 / (1 + std::exp(-z));
}

// s = sigmoid(z)
template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t d_sigmoid(scalar_t s) {
  return s * (1 - s);
}

// t = tanh(z)
template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t d_tanh(scalar_t t) {
  return 1 - t * t;
}

// expm1 keeps the digits that exp(z) - 1 loses near zero.
template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t elu(scalar_t z) {
  return z > 0 ? z : std::expm1(z);
}

// e = elu(z). A selection, not a product with a mask: for an infinite e a mask would multiply 0 by infinity.
template <typename scalar_t>
__host__ __device__ __forceinline__ scalar_t d_elu(scalar_t e) {
  return e > 0 ? scalar_t(1) : e + 1;
}
