// The gate functions and their derivatives, for the CPU and the GPU. Each derivative is computed from the
// function's output, which the backward pass has already, so it needs no further exponential.
//
// For float on a GPU, these functions use its units for 2^x and 1/x, which need half the instructions of exp
// and of a correctly rounded division. They are then off by a few units in the last place. Small arguments
// have a series, where a difference would lose digits; a selection takes less time than a branch.
#pragma once

#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#else  // g++ alone: a machine without CUDA builds for the CPU
#define __host__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))  // simd.h relies on it
#endif

#include <cmath>

template <typename math_t>
__host__ __device__ __forceinline__ math_t sigmoid(math_t z) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(math_t) == sizeof(float)) return __fdividef(1.0f, 1.0f + __expf(-z));
#endif
  return 1 / (1 + std::exp(-z));
}

// s = sigmoid(z)
template <typename math_t>
__host__ __device__ __forceinline__ math_t d_sigmoid(math_t s) {
  return s * (1 - s);
}

template <typename math_t>
__host__ __device__ __forceinline__ math_t gate_tanh(math_t z) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(math_t) == sizeof(float)) {
    const float q = z * z;
    const float series = z + z * q * (-1.0f / 3 + q * (2.0f / 15 + q * (-17.0f / 315 + q * (62.0f / 2835))));
    return q < 0.09f ? series : 1.0f - __fdividef(2.0f, 1.0f + __expf(2.0f * z));
  }
#endif
  return std::tanh(z);
}

// t = gate_tanh(z)
template <typename math_t>
__host__ __device__ __forceinline__ math_t d_tanh(math_t t) {
  return 1 - t * t;
}

// expm1 keeps the digits that exp(z) - 1 loses near zero.
template <typename math_t>
__host__ __device__ __forceinline__ math_t elu(math_t z) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(math_t) == sizeof(float)) {
    const float series =
        z * (1.0f + z * (0.5f + z * (1.0f / 6 + z * (1.0f / 24 + z * (1.0f / 120 + z * (1.0f / 720))))));
    return z > 0 ? z : z > -0.35f ? series : __expf(z) - 1.0f;
  }
#endif
  return z > 0 ? z : std::expm1(z);
}

// e = elu(z). A selection, not a product with a mask: for an infinite e a mask would multiply 0 by infinity.
template <typename math_t>
__host__ __device__ __forceinline__ math_t d_elu(math_t e) {
  return e > 0 ? math_t(1) : e + 1;
}
