// The pointwise part of the LLTM cell as two CUDA kernels over raw pointers; no torch header is included.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdint>

#include "lltm_math.h"

// One thread per (row, unit). Reads 4 numbers, writes 5; neighbouring threads access neighbouring units.
template <typename scalar_t>
__global__ void forward_kernel(scalar_t* __restrict__ new_h,           // [B,S]
                               scalar_t* __restrict__ new_cell,        // [B,S]
                               scalar_t* __restrict__ gates,           // [B,3S]: input, output, candidate
                               const scalar_t* __restrict__ z,         // [B,3S], same order
                               const scalar_t* __restrict__ old_cell,  // [B,S]
                               int64_t batch_size, int64_t state_size) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= state_size) return;
  for (int64_t row = blockIdx.y; row < batch_size; row += gridDim.y) {
    const int64_t at = row * state_size + unit;            // in a [B,S] tensor
    const int64_t at_gates = row * 3 * state_size + unit;  // of the input gate in a [B,3S] tensor

    const scalar_t input_gate = sigmoid(z[at_gates]);
    const scalar_t output_gate = sigmoid(z[at_gates + state_size]);
    const scalar_t candidate_cell = elu(z[at_gates + 2 * state_size]);
    gates[at_gates] = input_gate;
    gates[at_gates + state_size] = output_gate;
    gates[at_gates + 2 * state_size] = candidate_cell;

    const scalar_t cell = old_cell[at] + candidate_cell * input_gate;
    new_cell[at] = cell;
    new_h[at] = std::tanh(cell) * output_gate;
  }
}

// One thread per (row, unit). Reads 6 numbers, writes 4. A null pointer stands for a gradient of zeros.
template <typename scalar_t>
__global__ void backward_kernel(scalar_t* __restrict__ d_z,              // [B,3S]: input, output, candidate
                                scalar_t* __restrict__ d_old_cell,       // [B,S]
                                const scalar_t* __restrict__ grad_h,     // [B,S] or null
                                const scalar_t* __restrict__ grad_cell,  // [B,S] or null
                                const scalar_t* __restrict__ gates,      // [B,3S]
                                const scalar_t* __restrict__ new_cell,   // [B,S]
                                int64_t batch_size, int64_t state_size) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= state_size) return;
  for (int64_t row = blockIdx.y; row < batch_size; row += gridDim.y) {
    const int64_t at = row * state_size + unit;
    const int64_t at_gates = row * 3 * state_size + unit;

    const scalar_t input_gate = gates[at_gates];
    const scalar_t output_gate = gates[at_gates + state_size];
    const scalar_t candidate_cell = gates[at_gates + 2 * state_size];
    const scalar_t tanh_new_cell = std::tanh(new_cell[at]);
    const scalar_t d_new_h = grad_h ? grad_h[at] : scalar_t(0);
    const scalar_t from_above = grad_cell ? grad_cell[at] : scalar_t(0);

    const scalar_t d_new_cell = from_above + d_new_h * output_gate * d_tanh(tanh_new_cell);
    d_old_cell[at] = d_new_cell;
    d_z[at_gates] = d_new_cell * candidate_cell * d_sigmoid(input_gate);
    d_z[at_gates + state_size] = d_new_h * tanh_new_cell * d_sigmoid(output_gate);
    d_z[at_gates + 2 * state_size] = d_new_cell * input_gate * d_elu(candidate_cell);
  }
}

constexpr int kThreads = 256;
// The most blocks that a grid may have in y. A batch may have more rows, so the kernels loop over rows.
constexpr int64_t kMaxGridY = 65535;

dim3 grid_for(int64_t batch_size, int64_t state_size) {
  return dim3((state_size + kThreads - 1) / kThreads, std::min(batch_size, kMaxGridY));
}

template <typename scalar_t>
cudaError_t launch_forward(scalar_t* new_h, scalar_t* new_cell, scalar_t* gates, const scalar_t* z,
                           const scalar_t* old_cell, int64_t batch_size, int64_t state_size,
                           cudaStream_t stream) {
  if (batch_size == 0 || state_size == 0) return cudaSuccess;  // an empty grid is an error
  forward_kernel<scalar_t><<<grid_for(batch_size, state_size), kThreads, 0, stream>>>(
      new_h, new_cell, gates, z, old_cell, batch_size, state_size);
  return cudaGetLastError();
}

template <typename scalar_t>
cudaError_t launch_backward(scalar_t* d_z, scalar_t* d_old_cell, const scalar_t* grad_h,
                            const scalar_t* grad_cell, const scalar_t* gates, const scalar_t* new_cell,
                            int64_t batch_size, int64_t state_size, cudaStream_t stream) {
  if (batch_size == 0 || state_size == 0) return cudaSuccess;
  backward_kernel<scalar_t><<<grid_for(batch_size, state_size), kThreads, 0, stream>>>(
      d_z, d_old_cell, grad_h, grad_cell, gates, new_cell, batch_size, state_size);
  return cudaGetLastError();
}

// The host code only sees declarations, so each type it calls must be instantiated here.
template cudaError_t launch_forward(float*, float*, float*, const float*, const float*, int64_t, int64_t,
                                    cudaStream_t);
template cudaError_t launch_forward(double*, double*, double*, const double*, const double*, int64_t, int64_t,
                                    cudaStream_t);
template cudaError_t launch_backward(float*, float*, const float*, const float*, const float*, const float*,
                                     int64_t, int64_t, cudaStream_t);
template cudaError_t launch_backward(double*, double*, const double*, const double*, const double*,
                                     const double*, int64_t, int64_t, cudaStream_t);
