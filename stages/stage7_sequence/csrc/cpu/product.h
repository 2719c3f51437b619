// What the loops on a CPU share: threads, and the product of a few rows with a panel, in registers.
#pragma once

#include <ATen/Parallel.h>

#include <algorithm>
#include <type_traits>

#ifdef _OPENMP
#include <omp.h>
#endif

#include "simd.h"

namespace {  // each library has its own, as in autograd.cpp

inline int64_t divide_up(int64_t number, int64_t by) { return (number + by - 1) / by; }

// Calls function(thread, threads) in each of at most `threads` threads. It may call barrier(), which
// waits for all.
template <typename Function>
void in_parallel(int64_t threads, const Function& function) {
#ifdef _OPENMP
#pragma omp parallel num_threads(threads) if (threads > 1)
  function(omp_get_thread_num(), omp_get_num_threads());
#else
  function(0, 1);
#endif
}

inline void barrier() {
#pragma omp barrier
}

// How many threads are worth their start: `work` is the number of multiplications of all steps.
inline int64_t useful_threads(double work) {
  constexpr double kWorkOfThread = 1 << 17;
  return std::clamp<int64_t>(work / kWorkOfThread, 1, at::get_num_threads());
}

// A matrix with any strides.
template <typename math_t>
struct Matrix {
  const math_t* data;
  int64_t row_stride, column_stride;
  math_t at(int64_t row, int64_t column) const { return data[row * row_stride + column * column_stride]; }
};

// sums[row][v] += left[row][k] * panel[k][v], over all k. kRows * kVectors sums are in registers.
template <int kRows, int kVectors, typename V>
ALWAYS_INLINE void add_product(V (&sums)[kRows][kVectors], Matrix<typename V::scalar_t> left,
                               const typename V::scalar_t* panel, int64_t depth) {
  for (int64_t k = 0; k < depth; ++k) {
    V right[kVectors];
#pragma GCC unroll 4
    for (int v = 0; v < kVectors; ++v) right[v] = simd::load<V>(panel + (k * kVectors + v) * V::size);
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      const V number = left.at(row, k);
#pragma GCC unroll 4
      for (int v = 0; v < kVectors; ++v) sums[row][v] += number * right[v];
    }
  }
}

// Calls tile(kRows, row) for each kRows rows, and for the last ones with smaller powers of two.
template <int kRows, typename Tile>
ALWAYS_INLINE void for_tiles(int64_t row, int64_t last, const Tile& tile) {
  for (; row + kRows <= last; row += kRows) tile(std::integral_constant<int, kRows>(), row);
  if constexpr (kRows > 1) for_tiles<kRows / 2>(row, last, tile);
}

}  // namespace
