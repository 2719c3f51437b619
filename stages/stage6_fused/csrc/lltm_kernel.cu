// The pointwise part of the LLTM cell as two CUDA kernels whose time only memory bandwidth limits.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/core/Tensor.h>
#include <ATen/cuda/CUDAContextLight.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <type_traits>

#include "lltm_gates.h"
#include "lltm_launch.h"
#include "lltm_matrix.h"

using at::Tensor;

// What a thread reads or writes at once: neighbouring units of one row, in one access of 16 bytes.
template <typename scalar_t>
struct alignas(16) Pack {
  static constexpr int size = 16 / sizeof(scalar_t);
  scalar_t unit[size];
};

__host__ __device__ inline bool is_aligned(const void* pointer) {
  return reinterpret_cast<uintptr_t>(pointer) % sizeof(Pack<char>) == 0;
}

// The next `left` units of a row, at most a vector: in one access if they fill the vector, are contiguous and
// begin at a multiple of 16 bytes. kAligned says that this is so for all vectors, without a test.
template <bool kAligned, typename scalar_t>
__device__ __forceinline__ Pack<scalar_t> load(const scalar_t* from, int64_t left, int64_t stride = 1) {
  if (kAligned || (left >= Pack<scalar_t>::size && stride == 1 && is_aligned(from)))
    return *reinterpret_cast<const Pack<scalar_t>*>(from);
  Pack<scalar_t> pack = {};
#pragma unroll
  for (int k = 0; k < Pack<scalar_t>::size; ++k)
    if (k < left) pack.unit[k] = from[k * stride];
  return pack;
}

// The same for a matrix. If it has no data, it is a missing gradient: all zeros.
template <bool kAligned, typename scalar_t>
__device__ __forceinline__ Pack<scalar_t> load(const Matrix<scalar_t>& from, int64_t row, int64_t unit,
                                               int64_t left) {
  if (!from.data) return {};
  return load<kAligned>(from.at(row, unit), left, from.column_stride);
}

template <bool kAligned, typename scalar_t>
__device__ __forceinline__ void store(scalar_t* to, int64_t left, const Pack<scalar_t>& pack) {
  if (kAligned || (left >= Pack<scalar_t>::size && is_aligned(to))) {
    // A plain assignment may become a store for each number: the compiler loses sight of the alignment.
    __stwb(reinterpret_cast<uint4*>(to), reinterpret_cast<const uint4&>(pack));
    return;
  }
#pragma unroll
  for (int k = 0; k < Pack<scalar_t>::size; ++k)
    if (k < left) to[k] = pack.unit[k];
}

// A block has one warp for each of 8 rows. The warp handles the units of 32 vectors of its row.
constexpr int kRows = 8;

// Reads 4 numbers for each unit and writes 2. All maths is in math_t, which for half and bfloat16 is float.
template <bool kAligned, typename scalar_t>
__global__ void forward_kernel(scalar_t* __restrict__ new_h,     // [B,S]
                               scalar_t* __restrict__ new_cell,  // [B,S]
                               const scalar_t* __restrict__ z,   // [B,3S]: input, output, candidate
                               Matrix<scalar_t> old_cell,        // [B,S], any strides
                               int64_t batch_size, int64_t state_size) {
  using math_t = at::opmath_type<scalar_t>;
  const int64_t unit = (blockIdx.x * int64_t(kWarp) + threadIdx.x) * Pack<scalar_t>::size;
  const int64_t left = state_size - unit;
  if (left <= 0) return;
  for (int64_t row = blockIdx.y * int64_t(kRows) + threadIdx.y; row < batch_size;
       row += gridDim.y * int64_t(kRows)) {
    const scalar_t* z_row = z + row * 3 * state_size + unit;
    const Pack<scalar_t> z_i = load<kAligned>(z_row, left);
    const Pack<scalar_t> z_o = load<kAligned>(z_row + state_size, left);
    const Pack<scalar_t> z_g = load<kAligned>(z_row + 2 * state_size, left);
    const Pack<scalar_t> old = load<kAligned>(old_cell, row, unit, left);
    Pack<scalar_t> h, cell;
#pragma unroll
    for (int k = 0; k < Pack<scalar_t>::size; ++k) {
      const math_t input_gate = fast::sigmoid(math_t(z_i.unit[k]));
      const math_t output_gate = fast::sigmoid(math_t(z_o.unit[k]));
      const math_t candidate_cell = fast::elu(math_t(z_g.unit[k]));

      const math_t sum = math_t(old.unit[k]) + candidate_cell * input_gate;
      cell.unit[k] = sum;
      h.unit[k] = std::tanh(sum) * output_gate;
    }
    store<kAligned>(new_cell + row * state_size + unit, left, cell);
    store<kAligned>(new_h + row * state_size + unit, left, h);
  }
}

// Adds up the sums of the 8 warps of a block over their rows, always in the same order. Atomics would add in
// the order in which the warps happen to finish, and round differently each time.
template <int size, typename math_t>
__device__ void write_sums(math_t* __restrict__ sums,  // [gridDim.y,3S]
                           const math_t (&sum)[3][size], int64_t state_size) {
  constexpr int kUnits = kWarp * size;
  __shared__ math_t of_warps[kRows][3][kUnits];
  for (int gate = 0; gate < 3; ++gate)
    for (int k = 0; k < size; ++k) of_warps[threadIdx.y][gate][threadIdx.x * size + k] = sum[gate][k];
  __syncthreads();
  for (int k = threadIdx.y * kWarp + threadIdx.x; k < 3 * kUnits; k += kRows * kWarp) {
    const int64_t gate = k / kUnits, unit = blockIdx.x * int64_t(kUnits) + k % kUnits;
    if (unit >= state_size) continue;
    math_t total = 0;
    for (int warp = 0; warp < kRows; ++warp) total += of_warps[warp][gate][k % kUnits];
    sums[(blockIdx.y * int64_t(3) + gate) * state_size + unit] = total;
  }
}

// Reads 6 numbers for each unit and writes 4; the gates are computed again. With kSums, each block also adds
// up its rows of d_z. The bias's gradient is then the sum of one row a block, and d_z is not read a second
// time.
template <bool kAligned, bool kSums, typename scalar_t, typename math_t>
__global__ void backward_kernel(scalar_t* __restrict__ d_z,         // [B,3S]: input, output, candidate
                                scalar_t* __restrict__ d_old_cell,  // [B,S], or null if not needed
                                math_t* __restrict__ sums,          // [gridDim.y,3S] with kSums
                                Matrix<scalar_t> grad_h,            // [B,S], any strides
                                Matrix<scalar_t> grad_cell,         // [B,S], any strides
                                const scalar_t* __restrict__ z,     // [B,3S]
                                Matrix<scalar_t> new_cell,          // [B,S], any strides
                                int64_t batch_size, int64_t state_size) {
  constexpr int size = Pack<scalar_t>::size;
  const int64_t unit = (blockIdx.x * int64_t(kWarp) + threadIdx.x) * size;
  const int64_t left = state_size - unit;
  math_t sum[3][size] = {};
  // A thread without units skips the rows, but helps to add up the sums of others.
  for (int64_t row = blockIdx.y * int64_t(kRows) + threadIdx.y; left > 0 && row < batch_size;
       row += gridDim.y * int64_t(kRows)) {
    const scalar_t* z_row = z + row * 3 * state_size + unit;
    const Pack<scalar_t> z_i = load<kAligned>(z_row, left);
    const Pack<scalar_t> z_o = load<kAligned>(z_row + state_size, left);
    const Pack<scalar_t> z_g = load<kAligned>(z_row + 2 * state_size, left);
    const Pack<scalar_t> cell = load<kAligned>(new_cell, row, unit, left);
    const Pack<scalar_t> above_h = load<kAligned>(grad_h, row, unit, left);
    const Pack<scalar_t> above_cell = load<kAligned>(grad_cell, row, unit, left);
    Pack<scalar_t> d_z_i, d_z_o, d_z_g, d_cell;
#pragma unroll
    for (int k = 0; k < size; ++k) {
      const math_t input_gate = fast::sigmoid(math_t(z_i.unit[k]));
      const math_t output_gate = fast::sigmoid(math_t(z_o.unit[k]));
      const math_t candidate_cell = fast::elu(math_t(z_g.unit[k]));
      const math_t tanh_new_cell = std::tanh(math_t(cell.unit[k]));
      const math_t d_new_h = above_h.unit[k];

      const math_t d_new_cell = math_t(above_cell.unit[k]) + d_new_h * output_gate * d_tanh(tanh_new_cell);
      d_cell.unit[k] = d_new_cell;
      d_z_i.unit[k] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
      d_z_o.unit[k] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
      d_z_g.unit[k] = d_new_cell * input_gate * d_elu(candidate_cell);
      if (kSums) {
        sum[0][k] += math_t(d_z_i.unit[k]);
        sum[1][k] += math_t(d_z_o.unit[k]);
        sum[2][k] += math_t(d_z_g.unit[k]);
      }
    }
    scalar_t* d_z_row = d_z + row * 3 * state_size + unit;
    store<kAligned>(d_z_row, left, d_z_i);
    store<kAligned>(d_z_row + state_size, left, d_z_o);
    store<kAligned>(d_z_row + 2 * state_size, left, d_z_g);
    if (d_old_cell) store<kAligned>(d_old_cell + row * state_size + unit, left, d_cell);
  }
  if constexpr (kSums) write_sums(sums, sum, state_size);
}

// The largest size of a grid in y. A batch may be larger, hence the loops over rows.
constexpr int64_t kMaxGridY = 65535;

int64_t blocks_in_x(int64_t state_size, size_t element_size) {
  return divide_up(state_size, kWarp * 16 / int64_t(element_size));
}

// With sums, fewer blocks take more rows each, because each writes sums: about four for each multiprocessor.
int64_t rows_of_sums(int64_t batch_size, int64_t state_size, size_t element_size) {
  constexpr int64_t kBlocksOfMultiprocessor = 4, kRowsOfOneBlock = 64;
  if (batch_size <= kRowsOfOneBlock) return 1;  // its sums are the result: one launch fewer
  const int64_t blocks =
      kBlocksOfMultiprocessor * at::cuda::getCurrentDeviceProperties()->multiProcessorCount;
  const int64_t in_y = blocks / std::max<int64_t>(1, blocks_in_x(state_size, element_size));
  return std::clamp<int64_t>(in_y, 1, divide_up(batch_size, kRows));
}

// Calls function(std::true_type()) or function(std::false_type()): a bool that can be a template argument.
template <typename Function>
void with_bool(bool value, const Function& function) {
  value ? function(std::true_type()) : function(std::false_type());
}

// Whether every row of all these tensors begins at a multiple of 16 bytes. If a tensor has no gaps between
// its rows, as outputs do not, its rows also end at one.
bool is_aligned(std::initializer_list<Tensor> tensors) {
  return std::all_of(tensors.begin(), tensors.end(), [](const Tensor& tensor) {
    return !tensor.defined() || (tensor.stride(1) == 1 && is_aligned(tensor.const_data_ptr()) &&
                                 tensor.stride(0) * tensor.element_size() % sizeof(Pack<char>) == 0);
  });
}

void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& z, const Tensor& old_cell) {
  if (new_h.numel() == 0) return;  // an empty grid is an error
  const int64_t B = new_h.size(0), S = new_h.size(1);
  const dim3 grid(blocks_in_x(S, z.element_size()), std::min(divide_up(B, kRows), kMaxGridY));
  const dim3 block(kWarp, kRows);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_forward", [&] {
    with_bool(is_aligned({new_h, z, old_cell}), [&](auto aligned) {
      forward_kernel<decltype(aligned)::value, scalar_t>
          <<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(
              new_h.mutable_data_ptr<scalar_t>(), new_cell.mutable_data_ptr<scalar_t>(),
              z.const_data_ptr<scalar_t>(),
              Matrix<scalar_t>{old_cell.const_data_ptr<scalar_t>(), old_cell.stride(0), old_cell.stride(1)},
              B, S);
      C10_CUDA_KERNEL_LAUNCH_CHECK();
    });
  });
}

void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& sums, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& z, const Tensor& new_cell) {
  const int64_t B = new_cell.size(0), S = new_cell.size(1);
  const int64_t in_y = sums.defined() ? sums.size(0) : std::min(divide_up(B, kRows), kMaxGridY);
  if (S == 0 || in_y == 0) return;  // but sums over no rows are zeros, which the kernel must write
  const dim3 grid(blocks_in_x(S, z.element_size()), in_y), block(kWarp, kRows);
  AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, z.scalar_type(), "lltm_backward", [&] {
    using math_t = at::opmath_type<scalar_t>;
    Matrix<scalar_t> above_h = {}, above_cell = {};
    if (grad_h.defined()) above_h = {grad_h.const_data_ptr<scalar_t>(), grad_h.stride(0), grad_h.stride(1)};
    if (grad_cell.defined())
      above_cell = {grad_cell.const_data_ptr<scalar_t>(), grad_cell.stride(0), grad_cell.stride(1)};
    with_bool(is_aligned({d_z, z, new_cell, grad_h, grad_cell}), [&](auto aligned) {
      with_bool(sums.defined(), [&](auto with_sums) {
        backward_kernel<decltype(aligned)::value, decltype(with_sums)::value, scalar_t, math_t>
            <<<grid, block, 0, c10::cuda::getCurrentCUDAStream()>>>(
                d_z.mutable_data_ptr<scalar_t>(),
                d_old_cell.defined() ? d_old_cell.mutable_data_ptr<scalar_t>() : nullptr,
                sums.defined() ? sums.mutable_data_ptr<math_t>() : nullptr, above_h, above_cell,
                z.const_data_ptr<scalar_t>(),
                Matrix<scalar_t>{new_cell.const_data_ptr<scalar_t>(), new_cell.stride(0), new_cell.stride(1)},
                B, S);
        C10_CUDA_KERNEL_LAUNCH_CHECK();
      });
    });
  });
}
