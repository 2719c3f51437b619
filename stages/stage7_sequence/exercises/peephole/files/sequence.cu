// A sequence of an LSTM with peepholes, forward and backward, one launch each:
// sequence T B S X... WEIGHTS... PEEPHOLES... H0... CELL0... GRAD_OUTPUTS... GRAD_CELL...
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

#include "peephole.h"

constexpr int kGates = PeepholeLstm<double>::kGates;

__device__ PeepholeLstm<double> policy_of(const double* peepholes,  // [3,S]
                                          int unit, int S) {
  return {{peepholes[unit], peepholes[S + unit], peepholes[2 * S + unit]}};
}

// One block per row of the batch, one thread per unit: a row needs no other.
__global__ void forward_kernel(double* h,                // [T+1,B,S]: h[0] is the initial state
                               double* cells,            // [T+1,B,S], same
                               double* z,                // [T,B,4,S]: in: the input part; out: the sum
                               const double* weights,    // [4,S,S]
                               const double* peepholes,  // [3,S]
                               int T) {
  const int B = gridDim.x, S = blockDim.x, row = blockIdx.x, unit = threadIdx.x;
  const PeepholeLstm<double> policy = policy_of(peepholes, unit, S);
  for (int t = 0; t < T; ++t) {
    const int at = (t * B + row) * S, next = at + B * S;
    double z_of_unit[kGates];
    for (int gate = 0; gate < kGates; ++gate) {
      double& sum = z[at * kGates + gate * S + unit];
      for (int k = 0; k < S; ++k) sum += weights[(gate * S + unit) * S + k] * h[at + k];
      z_of_unit[gate] = sum;
    }
    double cell = cells[at + unit];
    h[next + unit] = policy.forward(z_of_unit, cell);
    cells[next + unit] = cell;
    __syncthreads();
  }
}

__global__ void backward_kernel(double* d_z,                 // [T,B,4,S]
                                double* d_h0,                // [B,S]
                                double* d_cell0,             // [B,S]
                                const double* grad_outputs,  // [T,B,S]
                                const double* grad_cell,     // [B,S]
                                const double* cells,         // [T+1,B,S]
                                const double* z,             // [T,B,4,S]
                                const double* weights,       // [4,S,S]
                                const double* peepholes,     // [3,S]
                                int T) {
  const int B = gridDim.x, S = blockDim.x, row = blockIdx.x, unit = threadIdx.x;
  const PeepholeLstm<double> policy = policy_of(peepholes, unit, S);
  double d_h = 0, d_cell = grad_cell[row * S + unit];
  for (int t = T - 1; t >= 0; --t) {
    const int at = (t * B + row) * S, next = at + B * S;
    double z_of_unit[kGates], d_z_of_unit[kGates];
    for (int gate = 0; gate < kGates; ++gate) z_of_unit[gate] = z[at * kGates + gate * S + unit];
    policy.backward(d_z_of_unit, z_of_unit, cells[at + unit], cells[next + unit],
                    d_h + grad_outputs[at + unit], d_cell);
    for (int gate = 0; gate < kGates; ++gate) d_z[at * kGates + gate * S + unit] = d_z_of_unit[gate];
    __syncthreads();
    d_h = 0;
    for (int row_of_weights = 0; row_of_weights < kGates * S; ++row_of_weights)
      d_h += d_z[at * kGates + row_of_weights] * weights[row_of_weights * S + unit];
  }
  d_h0[row * S + unit] = d_h;
  d_cell0[row * S + unit] = d_cell;
}

// Memory for `size` numbers. The first `given` are read from the command line.
double* numbers(int size, int given, char**& words) {
  double* x;
  cudaMallocManaged(&x, size * sizeof(double));
  for (int k = 0; k < given; ++k) x[k] = std::atof(*words++);
  return x;
}

void print(const double* x, int size) {
  for (int k = 0; k < size; ++k) std::printf("%.17g\n", x[k]);
}

int main(int, char** words) {
  const int T = std::atoi(words[1]), B = std::atoi(words[2]), S = std::atoi(words[3]);
  words += 4;
  const int state = B * S, gates = kGates * state;
  double *z = numbers(T * gates, T * gates, words), *weights = numbers(kGates * S * S, kGates * S * S, words);
  double* peepholes = numbers(3 * S, 3 * S, words);
  double *h = numbers((T + 1) * state, state, words), *cells = numbers((T + 1) * state, state, words);
  double *grad_outputs = numbers(T * state, T * state, words), *grad_cell = numbers(state, state, words);
  double* d_z = numbers(T * gates, 0, words);
  double *d_h0 = numbers(state, 0, words), *d_cell0 = numbers(state, 0, words);

  forward_kernel<<<B, S>>>(h, cells, z, weights, peepholes, T);
  backward_kernel<<<B, S>>>(d_z, d_h0, d_cell0, grad_outputs, grad_cell, cells, z, weights, peepholes, T);
  cudaDeviceSynchronize();

  print(h + state, T * state);
  print(cells + T * state, state);
  print(d_z, T * gates);
  print(d_h0, state);
  print(d_cell0, state);
  for (double* x : {z, weights, peepholes, h, cells, grad_outputs, grad_cell, d_z, d_h0, d_cell0})
    cudaFree(x);
}
