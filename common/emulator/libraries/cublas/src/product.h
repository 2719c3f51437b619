// Products of matrices: of any types, computed in one type.
#pragma once

#include <complex>
#include <cstdint>

#include "cublas_v2.h"

namespace emulator::cublas {

struct Matrix {
  const void* begin;
  cudaDataType type;
  std::int64_t leading;     // elements from a column to the next
  std::int64_t stride = 0;  // elements from a matrix to the next one of a batch
};

struct Shape {
  cublasOperation_t op_a, op_b;
  std::int64_t m, n, k;
};

std::size_t size_of(cudaDataType type);  // bytes of an element; 0: not supported

// C = alpha * op(A) * op(B) + beta * C. Without `reads_product`, A and B are not read; without `reads_c`, C
// is not.
template <typename Sum>
void multiply(const Shape& shape, const Matrix& a, const Matrix& b, const Matrix& c, Sum alpha, Sum beta,
              bool reads_product, bool reads_c);

}  // namespace emulator::cublas
