// The cell for sizes at which a launch takes longer than the arithmetic: forward is one launch, and all
// products of backward are another. Every sum is computed in the same order each time.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>

#include "lltm_gates.h"
#include "lltm_launch.h"
#include "lltm_matrix.h"

using at::Tensor;

// Forward: a warp computes one unit of 4 rows, that is, 3 x 4 numbers of z. Its lanes divide the columns.
// -------------------------------------------------------------------------------------------------------

constexpr int kRows = 4, kWarps = 4;

// Adds a lane's part of left @ right.T: 4 rows of left, and the 3 rows of right for the gates of a unit.
template <typename scalar_t, typename math_t>
__device__ __forceinline__ void add_products(math_t (&sums)[3][kRows],
                                             const Matrix<scalar_t>& left,   // [B,columns]
                                             const Matrix<scalar_t>& right,  // [3S,columns]
                                             int64_t row, int64_t unit, int64_t columns, int64_t batch_size,
                                             int64_t state_size) {
#pragma unroll 4
  for (int64_t column = threadIdx.x; column < columns; column += kWarp) {
    math_t of_left[kRows];
#pragma unroll
    for (int r = 0; r < kRows; ++r)  // past the last row: reads the last one, and the result is not stored
      of_left[r] = *left.at(std::min(row + r, batch_size - 1), column);
#pragma unroll
    for (int gate = 0; gate < 3; ++gate) {
      const math_t of_right = *right.at(gate * state_size + unit, column);
#pragma unroll
      for (int r = 0; r < kRows; ++r) sums[gate][r] += of_left[r] * of_right;
    }
  }
}

// The sum over the lanes of a warp. Every lane gets it.
template <typename math_t>
__device__ __forceinline__ math_t sum_of_warp(math_t value) {
#pragma unroll
  for (int apart = kWarp / 2; apart > 0; apart /= 2) value += __shfl_xor_sync(0xffffffff, value, apart);
  return value;
}

template <typename scalar_t>
__global__ void cell_kernel(scalar_t* __restrict__ new_h,     // [B,S]
                            scalar_t* __restrict__ new_cell,  // [B,S]
                            scalar_t* __restrict__ z,         // [B,3S]
                            Matrix<scalar_t> input,           // [B,I]
                            Matrix<scalar_t> of_h,            // [3S,S]: the weights of old_h
                            Matrix<scalar_t> of_input,        // [3S,I]: the weights of input
                            Matrix<scalar_t> bias,            // [1,3S]
                            Matrix<scalar_t> old_h,           // [B,S]
                            Matrix<scalar_t> old_cell,        // [B,S]
                            int64_t batch_size, int64_t input_size, int64_t state_size) {
  using math_t = at::opmath_type<scalar_t>;
  const int64_t unit = blockIdx.x, first_row = (blockIdx.y * int64_t(kWarps) + threadIdx.y) * kRows;
  if (first_row >= batch_size) return;

  math_t sums[3][kRows] = {};
  add_products(sums, old_h, of_h, first_row, unit, state_size, batch_size, state_size);
  add_products(sums, input, of_input, first_row, unit, input_size, batch_size, state_size);

  math_t mine[3] = {};  // lane r continues with row r
#pragma unroll
  for (int gate = 0; gate < 3; ++gate)
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const math_t sum = sum_of_warp(sums[gate][r]);
      if (threadIdx.x == r) mine[gate] = sum;
    }
  const int64_t row = first_row + threadIdx.x;
  if (threadIdx.x >= kRows || row >= batch_size) return;

#pragma unroll
  for (int gate = 0; gate < 3; ++gate) {
    const scalar_t rounded = mine[gate] + math_t(*bias.at(0, gate * state_size + unit));
    z[(row * 3 + gate) * state_size + unit] = rounded;
    mine[gate] = rounded;  // what backward will find
  }
  const math_t cell = math_t(*old_cell.at(row, unit)) + fast::elu(mine[2]) * fast::sigmoid(mine[0]);
  new_cell[row * state_size + unit] = cell;
  new_h[row * state_size + unit] = std::tanh(cell) * fast::sigmoid(mine[1]);
}

// Backward: several products, out = left @ right, in one launch.
// --------------------------------------------------------------

template <typename scalar_t>
struct Product {
  scalar_t* out;  // [rows,columns]
  int64_t out_stride;
  Matrix<scalar_t> left;   // [rows,depth]
  Matrix<scalar_t> right;  // [depth,columns]
  int64_t rows, columns, depth;
};

constexpr int kProducts = 3;
template <typename scalar_t>
struct Products {
  Product<scalar_t> list[kProducts];
};

// A block computes 4 x 64 numbers of out. Each warp takes every 16th step; then the warps' sums are added.
constexpr int kTileRows = 4, kColumnsOfLane = 2, kTileColumns = kColumnsOfLane * kWarp, kSplit = 16;

template <typename scalar_t>
__host__ __device__ int64_t blocks_of(const Product<scalar_t>& product) {
  return divide_up(product.rows, kTileRows) * divide_up(product.columns, kTileColumns);
}

template <typename scalar_t>
__global__ void __launch_bounds__(kWarp* kSplit)
    products_kernel(const __grid_constant__ Products<scalar_t> products) {
  using math_t = at::opmath_type<scalar_t>;
  int64_t block = blockIdx.x;
  int index = 0;
  while (block >= blocks_of(products.list[index])) block -= blocks_of(products.list[index++]);
  const Product<scalar_t>& product = products.list[index];
  const int64_t tiles = divide_up(product.columns, kTileColumns);
  const int64_t row = block / tiles * kTileRows, column = block % tiles * kTileColumns;

  math_t sums[kTileRows][kColumnsOfLane] = {};
#pragma unroll 4
  for (int64_t step = threadIdx.y; step < product.depth; step += kSplit) {
    math_t of_right[kColumnsOfLane];
#pragma unroll
    for (int c = 0; c < kColumnsOfLane; ++c)  // past the last column: reads the last one, not stored
      of_right[c] =
          *product.right.at(step, std::min(column + c * kWarp + int64_t(threadIdx.x), product.columns - 1));
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      const math_t of_left = *product.left.at(std::min(row + r, product.rows - 1), step);
#pragma unroll
      for (int c = 0; c < kColumnsOfLane; ++c) sums[r][c] += of_left * of_right[c];
    }
  }

  __shared__ math_t of_warps[kSplit][kTileRows][kTileColumns];
#pragma unroll
  for (int r = 0; r < kTileRows; ++r)
#pragma unroll
    for (int c = 0; c < kColumnsOfLane; ++c) of_warps[threadIdx.y][r][c * kWarp + threadIdx.x] = sums[r][c];
  __syncthreads();
  const int mine = threadIdx.y * kWarp + threadIdx.x, r = mine / kTileColumns, c = mine % kTileColumns;
  if (r >= kTileRows || row + r >= product.rows || column + c >= product.columns) return;
  math_t total = 0;
  for (int warp = 0; warp < kSplit; ++warp) total += of_warps[warp][r][c];
  product.out[(row + r) * product.out_stride + column + c] = total;
}

// Launches
// ---------

template <typename scalar_t>
Matrix<scalar_t> matrix_of(const Tensor& tensor) {
  return {tensor.const_data_ptr<scalar_t>(), tensor.stride(0), tensor.stride(1)};
}

// Shapes as above.
void launch_cell(const Tensor& new_h, const Tensor& new_cell, const Tensor& z, const Tensor& input,
                 const Tensor& weights, const Tensor& bias, const Tensor& old_h, const Tensor& old_cell) {
  const int64_t B = input.size(0), I = input.size(1), S = old_h.size(1);
  if (B * S == 0) return;  // an empty grid is an error
  const dim3 grid(S, divide_up(B, kWarps * kRows)), block(kWarp, kWarps);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_cell", [&] {
    const Matrix<scalar_t> of_h = matrix_of<scalar_t>(weights);
    const Matrix<scalar_t> of_input = {of_h.at(0, S), of_h.row_stride, of_h.column_stride};
    cell_kernel<<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(
        new_h.mutable_data_ptr<scalar_t>(), new_cell.mutable_data_ptr<scalar_t>(),
        z.mutable_data_ptr<scalar_t>(), matrix_of<scalar_t>(input), of_h, of_input,
        Matrix<scalar_t>{bias.const_data_ptr<scalar_t>(), 0, bias.stride(0)}, matrix_of<scalar_t>(old_h),
        matrix_of<scalar_t>(old_cell), B, I, S);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}

// d_X is d_z @ weights, from column first_column on, and d_weights is d_z.T @ [old_h, input]. Either may be
// undefined, if it is not needed.
void launch_products(const Tensor& d_X, int64_t first_column,
                     const Tensor& d_weights,  // [3S,S+I]
                     const Tensor& d_z,        // [B,3S]
                     const Tensor& weights, const Tensor& old_h, const Tensor& input) {
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, d_z.scalar_type(), "lltm_products", [&] {
    const Matrix<scalar_t> rows = matrix_of<scalar_t>(d_z), columns = {rows.data, 1, rows.row_stride};
    Products<scalar_t> products = {};
    const int64_t B = d_z.size(0), units = d_z.size(1), S = old_h.size(1), I = input.size(1);
    if (d_X.defined()) {
      Matrix<scalar_t> right = matrix_of<scalar_t>(weights);
      right.data = right.at(0, first_column);
      products.list[0] = {
          d_X.mutable_data_ptr<scalar_t>(), d_X.stride(0), rows, right, B, d_X.size(1), units};
    }
    if (d_weights.defined()) {
      scalar_t* const out = d_weights.mutable_data_ptr<scalar_t>();
      products.list[1] = {out, S + I, columns, matrix_of<scalar_t>(old_h), units, S, B};
      products.list[2] = {out + S, S + I, columns, matrix_of<scalar_t>(input), units, I, B};
    }
    int64_t blocks = 0;
    for (const auto& product : products.list) blocks += blocks_of(product);
    if (blocks == 0) return;
    products_kernel<<<blocks, dim3(kWarp, kSplit), 0, c10::cuda::getCurrentCUDAStream()>>>(products);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
  });
}
