// The product itself. Both factors are converted to the type of the sums first, so all types share one loop.
#include "product.h"

#include <algorithm>
#include <type_traits>
#include <vector>

// g++ vectorises the inner loop only at this level. The order of the additions is that of the source.
#pragma GCC optimize("O3")

namespace emulator::cublas {
namespace {

constexpr std::int64_t kRows = 512, kDepth = 128;  // a block of A that stays in the second cache
constexpr std::int64_t kColumns = 4;               // of C: each element of A that is loaded serves so many

template <typename T>
constexpr bool is_complex = false;
template <typename T>
constexpr bool is_complex<std::complex<T>> = true;

// Calls `take` with a pointer to elements of the type.
template <typename Take>
void with_elements(const void* begin, cudaDataType type, Take take) {
  switch (type) {
    case CUDA_R_16F:
      return take(static_cast<const __half*>(begin));
    case CUDA_R_16BF:
      return take(static_cast<const __nv_bfloat16*>(begin));
    case CUDA_R_32F:
      return take(static_cast<const float*>(begin));
    case CUDA_R_64F:
      return take(static_cast<const double*>(begin));
    case CUDA_R_8I:
      return take(static_cast<const std::int8_t*>(begin));
    case CUDA_R_32I:
      return take(static_cast<const std::int32_t*>(begin));
    case CUDA_C_32F:
      return take(static_cast<const std::complex<float>*>(begin));
    case CUDA_C_64F:
      return take(static_cast<const std::complex<double>*>(begin));
    default:
      return;
  }
}

template <typename To, typename From>
To convert(From value) {
  if constexpr (is_complex<From> && !is_complex<To>)
    return To(value.real());  // never: only complex sums have complex factors
  else if constexpr (is_complex<From>)
    return To(value);
  else if constexpr (is_complex<To> || std::is_arithmetic_v<From>)
    return To(typename std::conditional_t<is_complex<To>, double, To>(value));
  else
    return To(float(value));
}

// op(X), in column-major order without gaps.
template <typename Sum>
std::vector<Sum> gather(const Matrix& x, cublasOperation_t op, std::int64_t rows, std::int64_t columns) {
  std::vector<Sum> all(rows * columns);
  with_elements(x.begin, x.type, [&](auto* begin) {
    for (std::int64_t j = 0; j < columns; j++)
      for (std::int64_t i = 0; i < rows; i++)
        all[j * rows + i] = convert<Sum>(begin[op == CUBLAS_OP_N ? j * x.leading + i : i * x.leading + j]);
  });
  if constexpr (is_complex<Sum>)
    if (op == CUBLAS_OP_C)
      for (Sum& one : all) one = std::conj(one);
  return all;
}

// Adds to columns of C: `rows` rows of A's columns `first` to `last`, with the factors in B's columns.
template <typename Sum, int count>
void add_block(std::int64_t rows, std::int64_t first, std::int64_t last, const Sum* a, std::int64_t m,
               const Sum* b, std::int64_t k, Sum* c) {
  for (std::int64_t p = first; p < last; p++) {
    const Sum* __restrict__ column = a + p * m;
    Sum factors[count];
    for (int j = 0; j < count; j++) factors[j] = b[j * k + p];
    Sum* __restrict__ out = c;
    for (int j = 0; j < count; j++, out += m)
      for (std::int64_t i = 0; i < rows; i++) out[i] += column[i] * factors[j];
  }
}

}  // namespace

std::size_t size_of(cudaDataType type) {
  std::size_t size = 0;
  with_elements(nullptr, type, [&](auto* begin) { size = sizeof(*begin); });
  return size;
}

template <typename Sum>
void multiply(const Shape& shape, const Matrix& a, const Matrix& b, const Matrix& c, Sum alpha, Sum beta,
              bool reads_product, bool reads_c) {
  const auto [op_a, op_b, m, n, k] = shape;
  std::vector<Sum> sums(m * n);
  if (reads_product) {
    const std::vector<Sum> left = gather<Sum>(a, op_a, m, k), right = gather<Sum>(b, op_b, k, n);
    for (std::int64_t p = 0; p < k; p += kDepth)
      for (std::int64_t i = 0; i < m; i += kRows)
        for (std::int64_t j = 0; j < n; j += kColumns) {
          const std::int64_t rows = std::min(kRows, m - i), last = std::min(p + kDepth, k);
          if (j + kColumns <= n)
            add_block<Sum, kColumns>(rows, p, last, &left[i], m, &right[j * k], k, &sums[j * m + i]);
          else
            for (std::int64_t one = j; one < n; one++)
              add_block<Sum, 1>(rows, p, last, &left[i], m, &right[one * k], k, &sums[one * m + i]);
        }
  }
  with_elements(c.begin, c.type, [&](auto* begin) {
    using Element = std::remove_const_t<std::remove_pointer_t<decltype(begin)>>;
    auto* out = const_cast<Element*>(begin);
    for (std::int64_t j = 0; j < n; j++)
      for (std::int64_t i = 0; i < m; i++) {
        Element& element = out[j * c.leading + i];
        Sum value = alpha * sums[j * m + i];
        if (reads_c) value += beta * convert<Sum>(element);
        element = convert<Element>(value);
      }
  });
}

#define EMULATOR_MULTIPLY(Sum) \
  template void multiply(const Shape&, const Matrix&, const Matrix&, const Matrix&, Sum, Sum, bool, bool);
EMULATOR_MULTIPLY(float)
EMULATOR_MULTIPLY(double)
EMULATOR_MULTIPLY(std::int32_t)
EMULATOR_MULTIPLY(std::complex<float>)
EMULATOR_MULTIPLY(std::complex<double>)

}  // namespace emulator::cublas
