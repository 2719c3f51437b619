// A matrix that a kernel reads, with any strides and without a copy.
#pragma once

#include <cstdint>

template <typename scalar_t>
struct Matrix {
  const scalar_t* data;
  int64_t row_stride, column_stride;

  __host__ __device__ const scalar_t* at(int64_t row, int64_t column) const {
    return data + row * row_stride + column * column_stride;
  }
};
