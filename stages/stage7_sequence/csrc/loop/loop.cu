// The loop over steps, and the pointwise part of one step as two kernels: a thread for each unit of each row.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/add.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/empty.h>
#include <ATen/ops/mm.h>
#include <ATen/ops/zeros.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAStream.h>

#include "loop.h"

using at::Tensor;

namespace {

constexpr int kThreads = 256;

// The arrays of one step: those of all steps (arrays.h) at this time, and what the loop hands from step to
// step. Pointers to missing arrays are null.
template <typename scalar_t>
struct ForwardStep {
  const scalar_t* x;          // [B,G,S]
  const scalar_t* recurrent;  // [B,G,S]: the recurrent parts, with their bias
  const scalar_t* old_h;      // [B,S]
  scalar_t* h;                // [B,S], out
  scalar_t* cell;             // [B,S], in and out
  scalar_t* cells;            // [B,S], out: the new cell once more
  scalar_t* z;                // [B,K,S], out
  const int64_t* lengths;     // [B]
  int64_t time, batch_size, state_size;
};

// math_t is float for half and bfloat16.
template <typename scalar_t>
struct BackwardStep {
  using math_t = at::opmath_type<scalar_t>;
  const scalar_t* grad_outputs;  // [B,S]
  const scalar_t* from_product;  // [B,S]: the part of d_h that comes through the product of the step after
  const scalar_t* z;             // [B,K,S]
  const scalar_t* old_h;         // [B,S]
  const scalar_t* old_cell;      // [B,S]
  const scalar_t* cell;          // [B,S]: after this step
  math_t* d_h;             // [B,S], in and out: the rest of the gradient of h, after and before this step
  math_t* d_cell;          // [B,S], in and out
  scalar_t* d_z;           // [B,K,S], out
  scalar_t* d_recurrent;   // [B,G,S], out
  const int64_t* lengths;  // [B]
  int64_t time, batch_size, state_size;
};

template <typename Cell, typename scalar_t>
__global__ void forward_kernel(const ForwardStep<scalar_t> step) {
  using math_t = at::opmath_type<scalar_t>;
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const int64_t S = step.state_size, unit_of_all = blockIdx.x * int64_t(kThreads) + threadIdx.x;
  if (unit_of_all >= step.batch_size * S) return;
  const int64_t row = unit_of_all / S, unit = unit_of_all % S;

  math_t x[G], recurrent[G], z[K];
  for (int gate = 0; gate < G; ++gate) {
    x[gate] = step.x[(row * G + gate) * S + unit];
    recurrent[gate] = step.recurrent[(row * G + gate) * S + unit];
  }
  Cell::pre_activations(z, x, recurrent);
  for (int k = 0; k < K; ++k) {
    const scalar_t rounded = z[k];
    z[k] = rounded;  // what backward will find
    if (step.z) step.z[(row * K + k) * S + unit] = rounded;
  }

  const scalar_t old_h = step.old_h[unit_of_all];
  const scalar_t old_cell = Cell::kHasCell ? step.cell[unit_of_all] : scalar_t(0);
  math_t cell = old_cell;
  const math_t h = Cell::forward(z, math_t(old_h), cell);
  const bool is_past = step.lengths && step.time >= step.lengths[row];
  step.h[unit_of_all] = is_past ? old_h : scalar_t(h);
  if (Cell::kHasCell) {
    const scalar_t new_cell = is_past ? old_cell : scalar_t(cell);
    step.cell[unit_of_all] = new_cell;
    if (step.cells) step.cells[unit_of_all] = new_cell;
  }
}

template <typename Cell, typename scalar_t>
__global__ void backward_kernel(const BackwardStep<scalar_t> step) {
  using math_t = at::opmath_type<scalar_t>;
  constexpr int G = Cell::kGates, K = Cell::kSaved;
  const int64_t S = step.state_size, unit_of_all = blockIdx.x * int64_t(kThreads) + threadIdx.x;
  if (unit_of_all >= step.batch_size * S) return;
  const int64_t row = unit_of_all / S, unit = unit_of_all % S;

  math_t d_h = step.d_h[unit_of_all];
  if (step.from_product) d_h += math_t(step.from_product[unit_of_all]);
  if (step.grad_outputs) d_h += math_t(step.grad_outputs[unit_of_all]);
  math_t d_z[K] = {};
  if (!step.lengths || step.time < step.lengths[row]) {
    math_t z[K], old_cell = 0, cell = 0, d_cell = 0;
    for (int k = 0; k < K; ++k) z[k] = step.z[(row * K + k) * S + unit];
    if (Cell::kHasCell) {
      old_cell = step.old_cell[unit_of_all];
      cell = step.cell[unit_of_all];
      d_cell = step.d_cell[unit_of_all];
    }
    d_h = Cell::backward(d_z, z, math_t(step.old_h[unit_of_all]), old_cell, cell, d_h, d_cell);
    if (Cell::kHasCell) step.d_cell[unit_of_all] = d_cell;
  }
  step.d_h[unit_of_all] = d_h;
  for (int k = 0; k < K; ++k) step.d_z[(row * K + k) * S + unit] = d_z[k];
  for (int gate = 0; gate < G; ++gate)
    step.d_recurrent[(row * G + gate) * S + unit] = d_z[Cell::recurrent(gate)];
}

// What an array of all steps has for one step of `size` numbers.
template <typename number_t>
number_t* at_step(number_t* all, int64_t time, int64_t size) {
  return all ? all + time * size : nullptr;
}

int64_t blocks_for(int64_t numbers) { return (numbers + kThreads - 1) / kThreads; }

template <typename Cell, typename scalar_t>
void run_steps(const ForwardArguments& given, const ForwardResults& made) {
  const int64_t T = given.x.size(0), B = given.h0.size(0), S = given.h0.size(1), BS = B * S;
  const ForwardArrays<scalar_t> arrays = arrays_of<scalar_t>(given, made);
  const Tensor columns = given.weights_h.t();  // [S,G*S]
  if (Cell::kHasCell) made.cell.copy_(*given.cell0);
  Tensor h = given.h0;
  for (int64_t step = 0; step < T; ++step) {
    const int64_t time = given.reverse ? T - 1 - step : step;
    const Tensor recurrent = given.bias_h ? at::addmm(*given.bias_h, h, columns) : h.mm(columns);
    const Tensor new_h = made.outputs[time];
    const ForwardStep<scalar_t> arrays_of_step = {at_step(arrays.x, time, Cell::kGates * BS),
                                                  pointer_to<scalar_t>(recurrent),
                                                  pointer_to<scalar_t>(h),
                                                  pointer_to_out<scalar_t>(new_h),
                                                  arrays.cell,
                                                  at_step(arrays.cells, time, BS),
                                                  at_step(arrays.z, time, Cell::kSaved * BS),
                                                  arrays.lengths,
                                                  time,
                                                  B,
                                                  S};
    forward_kernel<Cell, scalar_t>
        <<<blocks_for(BS), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(arrays_of_step);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    h = new_h;
  }
  made.h.copy_(h);
}

template <typename Cell, typename scalar_t>
void run_steps(const BackwardArguments& given, const BackwardResults& made) {
  using math_t = at::opmath_type<scalar_t>;
  const int64_t T = given.z.size(0), B = given.h0.size(0), S = given.h0.size(1), BS = B * S;
  const BackwardArrays<scalar_t> arrays = arrays_of<scalar_t>(given, made);
  const auto math = given.z.options().dtype(at::toOpMathType(given.z.scalar_type()));
  auto start = [&](const OptionalTensor& grad) {
    return grad ? grad->to(math).clone() : at::zeros({B, S}, math);
  };
  const Tensor d_h = start(given.grad_h),
               d_cell = Cell::kHasCell ? start(given.grad_cell) : at::empty({0}, math);
  OptionalTensor from_product;
  for (int64_t step = T - 1; step >= 0; --step) {
    const int64_t time = given.reverse ? T - 1 - step : step, before = given.reverse ? time + 1 : time - 1;
    const Tensor d_recurrent = at::empty({B, Cell::kGates * S}, given.z.options());
    const BackwardStep<scalar_t> arrays_of_step = {at_step(arrays.grad_outputs, time, BS),
                                                   pointer_to<scalar_t>(from_product),
                                                   at_step(arrays.z, time, Cell::kSaved * BS),
                                                   step ? at_step(arrays.outputs, before, BS) : arrays.h0,
                                                   step ? at_step(arrays.cells, before, BS) : arrays.cell0,
                                                   at_step(arrays.cells, time, BS),
                                                   pointer_to_out<math_t>(d_h),
                                                   pointer_to_out<math_t>(d_cell),
                                                   at_step(arrays.d_z, time, Cell::kSaved * BS),
                                                   pointer_to_out<scalar_t>(d_recurrent),
                                                   arrays.lengths,
                                                   time,
                                                   B,
                                                   S};
    backward_kernel<Cell, scalar_t>
        <<<blocks_for(BS), kThreads, 0, c10::cuda::getCurrentCUDAStream()>>>(arrays_of_step);
    C10_CUDA_KERNEL_LAUNCH_CHECK();
    from_product = d_recurrent.mm(given.weights_h);
  }
  made.d_h0.copy_(from_product ? at::add(d_h, *from_product) : d_h);
  if (Cell::kHasCell) made.d_cell0.copy_(d_cell);
}

template <typename Arguments, typename Results>
void run_loop_of(const Arguments& given, const Results& made) {
  if (given.h0.numel() == 0) return;  // there is nothing to compute, and an empty grid is an error
  with_cell(given.cell, [&](auto policy) {
    AT_DISPATCH_FLOATING_TYPES_AND2(at::kHalf, at::kBFloat16, given.h0.scalar_type(), "lltm_recurrence",
                                    [&] { run_steps<decltype(policy), scalar_t>(given, made); });
  });
}

}  // namespace

void run_loop(const ForwardArguments& given, const ForwardResults& made) { run_loop_of(given, made); }
void run_loop(const BackwardArguments& given, const BackwardResults& made) { run_loop_of(given, made); }
