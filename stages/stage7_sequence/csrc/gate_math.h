// The gate functions and their derivatives, for the CPU and the GPU. Each derivative is computed from the
// function's output, which the backward pass has already, so it needs no further exponential.
//
// For float on a GPU, sigmoid and elu use its units for 2^x and 1/x, which need half the instructions of exp
// and of a correctly rounded division. They are then off by a few units in the last place.
#pragma once

#if __has_include(<cuda_runtime.h>)
#include <cuda_runtime.h>
#else  // g++ alone: a machine without CUDA builds for the CPU
#define __host__
#define __device__
#define __forceinline__ inline
#endif

#include <cmath>

using std::tanh;  // and not std::tanh in cells.h, so that a type with its own gate functions gets its own
                  // tanh

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

// t = tanh(z)
template <typename math_t>
__host__ __device__ __forceinline__ math_t d_tanh(math_t t) {
  return 1 - t * t;
}

// expm1 keeps the digits that exp(z) - 1 loses near zero. So do the first terms of the series.
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
