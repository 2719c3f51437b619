// A recurrence whose rows have different lengths, forward and backward: h = tanh(x + weights @ h)
#pragma once

// The sum of a[k * stride] * b[k] over `count` numbers.
__device__ float dot(const float* a, int stride, const float* b, int count) {
  float sum = 0;
  for (int k = 0; k < count; ++k) sum += a[k * stride] * b[k];
  return sum;
}

// One block, one thread per row and unit.
__global__ void forward_kernel(float* outputs,        // [T,B,S]: the state after each step
                               const float* x,        // [T,B,S]
                               const float* weights,  // [S,S]
                               const float* h0,       // [B,S]
                               const int* lengths,    // [B]: from 0 to T
                               int T) {
  extern __shared__ float states[];  // [2,B,S]: two buffers take turns
  const int S = blockDim.x, B = blockDim.y, unit = threadIdx.x, row = threadIdx.y;
  states[row * S + unit] = h0[row * S + unit];
  __syncthreads();
  for (int t = 0; t < T; ++t) {
    const float* old_h = states + (t % 2 * B + row) * S;  // [S]: of this row
    float* new_h = states + ((t + 1) % 2 * B + row) * S;  // [S]
    const int at = (t * B + row) * S + unit;
    // BEGIN SOLUTION forward: this is right for rows of T steps. Follow lengths.
    const bool is_active = t < lengths[row];
    new_h[unit] = is_active ? tanhf(x[at] + dot(weights + unit * S, 1, old_h, S)) : old_h[unit];
    outputs[at] = new_h[unit];
    // BEGIN STARTER
    // new_h[unit] = tanhf(x[at] + dot(weights + unit * S, 1, old_h, S));
    // outputs[at] = new_h[unit];
    // END STARTER
    // END SOLUTION
    __syncthreads();
  }
}

// One block, one thread per row and unit.
__global__ void backward_kernel(float* d_x,                 // [T,B,S]
                                float* d_h0,                // [B,S]
                                const float* grad_outputs,  // [T,B,S]
                                const float* outputs,       // [T,B,S]
                                const float* weights,       // [S,S]
                                const int* lengths,         // [B]
                                int T) {
  extern __shared__ float d_z[];  // [B,S]: the gradients of x + weights @ h in a step
  const int S = blockDim.x, B = blockDim.y, unit = threadIdx.x, row = threadIdx.y;
  float d_h = 0;  // the gradient of this row's unit after step t
  for (int t = T - 1; t >= 0; --t) {
    const int at = (t * B + row) * S + unit;
    // BEGIN SOLUTION backward: this is right for rows of T steps. Follow lengths.
    const bool is_active = t < lengths[row];
    d_h += grad_outputs[at];
    d_z[row * S + unit] = is_active ? d_h * (1 - outputs[at] * outputs[at]) : 0;
    d_x[at] = d_z[row * S + unit];
    __syncthreads();
    if (is_active) d_h = dot(weights + unit, S, d_z + row * S, S);
    // BEGIN STARTER
    // d_h += grad_outputs[at];
    // d_z[row * S + unit] = d_h * (1 - outputs[at] * outputs[at]);
    // d_x[at] = d_z[row * S + unit];
    // __syncthreads();
    // d_h = dot(weights + unit, S, d_z + row * S, S);
    // END STARTER
    // END SOLUTION
    __syncthreads();
  }
  d_h0[row * S + unit] = d_h;
}
