// The sigmoid, and derivatives that are computed from the function's output.
#pragma once

#include <cmath>

template <typename math_t>
__host__ __device__ math_t sigmoid(math_t z) {
  return 1 / (1 + std::exp(-z));
}

// s = sigmoid(z)
template <typename math_t>
__host__ __device__ math_t d_sigmoid(math_t s) {
  return s * (1 - s);
}

// t = tanh(z)
template <typename math_t>
__host__ __device__ math_t d_tanh(math_t t) {
  return 1 - t * t;
}
