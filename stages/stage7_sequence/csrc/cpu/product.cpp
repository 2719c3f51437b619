// The product of two matrices on a CPU. torch calls a library for it, which on many CPUs does not use
// their widest vectors; and the shapes here are long and narrow: one product has the rows of all steps,
// and few columns.
//
// A tile of 8 rows and two vectors of columns has its sums in registers. The right matrix is copied
// into panels, block after block of its rows, so that a panel stays in the cache while all tiles of a
// thread use it.
#include <ATen/Dispatch.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>

#include "../operators/operators.h"
#include "product.h"

namespace {  // each library has its own, as in autograd.cpp

using at::Tensor;

constexpr int kVectors = 2;
constexpr int64_t kDepth = 256;  // rows of a panel

// out = left @ right + bias
template <typename math_t>
struct Gemm {
  Matrix<math_t> left;   // [M,K]
  Matrix<math_t> right;  // [K,N]
  const math_t* bias;    // [N], or null for zeros
  math_t* out;           // [M,N]
  int64_t M, N, K;

  // Columns of `right`, from row `first_k` on: panel [blocks][depth][columns of a block], padded with zeros.
  template <int kColumns>
  ALWAYS_INLINE void fill_panel(math_t* panel, int64_t first_k, int64_t depth) const {
    for (int64_t column = 0; column < N; column += kColumns)
      for (int64_t k = 0; k < depth; ++k, panel += kColumns)
        for (int64_t c = 0; c < kColumns; ++c)
          panel[c] = column + c < N ? right.at(first_k + k, column + c) : math_t(0);
  }

  // The numbers of `left` that a tile needs, copied if those of one column are closer together than those of
  // one row.
  template <int kRows>
  ALWAYS_INLINE Matrix<math_t> tile_of_left(math_t* copy, int64_t row, int64_t first_k, int64_t depth) const {
    const math_t* const from = left.data + row * left.row_stride + first_k * left.column_stride;
    const Matrix<math_t> tile = {from, left.row_stride, left.column_stride};
    if (left.row_stride > left.column_stride) return tile;
    for (int64_t k = 0; k < depth; ++k)
      for (int r = 0; r < kRows; ++r) copy[k * kRows + r] = tile.at(r, k);
    return {copy, 1, kRows};
  }

  template <typename Registers>
  ALWAYS_INLINE void compute_rows(int64_t first_row, int64_t last_row, math_t* panel) const {
    using V = simd::Vector<math_t, Registers::kBytes>;
    constexpr int kColumns = kVectors * V::size, kRowsOfTile = 2 * Registers::kRows;
    math_t copy[kDepth * kRowsOfTile];
    for (int64_t first_k = 0; first_k < std::max<int64_t>(K, 1); first_k += kDepth) {
      const int64_t depth = std::min(kDepth, K - first_k);
      fill_panel<kColumns>(panel, first_k, depth);
      for_tiles<kRowsOfTile>(first_row, last_row, [&](auto rows, int64_t row) __attribute__((always_inline)) {
        const Matrix<math_t> tile = tile_of_left<rows>(copy, row, first_k, depth);
        for (int64_t column = 0; column < N; column += kColumns) {
          const math_t* const start = first_k ? nullptr : bias;
          V sums[rows][kVectors] = {};
          add_product<rows, kVectors, V>(sums, tile, panel + column * depth, depth);
          for (int v = 0; v < kVectors; ++v) {
            const int64_t first = column + v * V::size, count = std::min<int64_t>(V::size, N - first);
            if (count <= 0) break;
            for (int r = 0; r < rows; ++r) {
              math_t* const to = out + (row + r) * N + first;
              if (first_k) sums[r][v] += simd::load<V>(to, count);
              if (start) sums[r][v] += simd::load<V>(start + first, count);
              simd::store(to, sums[r][v], count);
            }
          }
        }
      });
    }
  }
};

template <typename math_t>
void run(const Gemm<math_t>& shared) {
  const int64_t threads =
      std::min(useful_threads(double(shared.M) * shared.N * shared.K), divide_up(shared.M, 8));
  const int64_t columns = kVectors * simd::vector_bytes() / sizeof(math_t);
  const int64_t size = std::min(kDepth, shared.K) * divide_up(shared.N, columns) * columns;
  const Tensor panels =
      at::empty({threads, size}, at::TensorOptions(c10::CppTypeToScalarType<math_t>::value));
  math_t* const first_panel = panels.template mutable_data_ptr<math_t>();
  in_parallel(threads, [&](int64_t thread, int64_t count) {
    simd::run([&](auto registers) __attribute__((always_inline)) {
      const Gemm<math_t> gemm = shared;
      // Whole tiles of rows, except at the end.
      const int64_t tiles = divide_up(gemm.M, 8);
      gemm.template compute_rows<decltype(registers)>(tiles * thread / count * 8,
                                                      std::min(gemm.M, tiles * (thread + 1) / count * 8),
                                                      first_panel + thread * size);
    });
  });
}

Tensor product(const Tensor& left,                // [M,K]
               const Tensor& right,               // [K,N]
               const OptionalTensor& bias_any) {  // [N]
  check_product(left, right, bias_any);
  const int64_t M = left.size(0), K = left.size(1), N = right.size(1);
  const bool is_16_bit = left.scalar_type() == at::kHalf || left.scalar_type() == at::kBFloat16;
  if (is_16_bit || M < 8) return bias_any ? at::addmm(*bias_any, left, right) : left.mm(right);
  const OptionalTensor bias = bias_any ? OptionalTensor(bias_any->contiguous()) : bias_any;
  const Tensor out = at::empty({M, N}, left.options());
  AT_DISPATCH_FLOATING_TYPES(left.scalar_type(), "lltm_product", [&] {
    auto matrix_of = [](const Tensor& tensor) {
      return Matrix<scalar_t>{tensor.const_data_ptr<scalar_t>(), tensor.stride(0), tensor.stride(1)};
    };
    run(Gemm<scalar_t>{matrix_of(left), matrix_of(right), bias ? bias->const_data_ptr<scalar_t>() : nullptr,
                       out.mutable_data_ptr<scalar_t>(), M, N, K});
  });
  return out;
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) { m.impl("product", &product); }

}  // namespace
