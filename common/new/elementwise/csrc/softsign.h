// The function and its derivative, for both devices. For another function, only these two lines change.
#pragma once

#include <ATen/core/Tensor.h>

#include <cmath>

// C10_HOST_DEVICE is __host__ __device__ for nvcc and nothing for g++. T is float or double.
template <typename T>
C10_HOST_DEVICE T softsign(T x) {
  return x / (1 + std::abs(x));
}

template <typename T>
C10_HOST_DEVICE T d_softsign(T x) {
  return 1 / ((1 + std::abs(x)) * (1 + std::abs(x)));
}

// Raises an error unless grad_y has the shape, dtype and device of x. A kernel does not check this.
void check_gradient(const at::Tensor& grad_y, const at::Tensor& x);
