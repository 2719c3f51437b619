// The backward of a GRU cell's pointwise part: gru_backward B S GRAD_H... GATES... FROM_H... H...
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 64;

// The derivative of sigmoid as a function of its output.
__device__ double d_sigmoid(double s) { return s * (1 - s); }

// One thread per (row, unit).
__global__ void gru_backward_kernel(double* __restrict__ d_from_input,  // [B,3S]: reset, update, candidate
                                    double* __restrict__ d_from_h,      // [B,3S], same order
                                    double* __restrict__ d_h,           // [B,S], only the direct part
                                    const double* __restrict__ grad_h,  // [B,S]
                                    const double* __restrict__ gates,   // [B,3S], activated
                                    const double* __restrict__ from_h,  // [B,3S]
                                    const double* __restrict__ h,       // [B,S]
                                    int64_t B, int64_t S) {
  // BEGIN SOLUTION kernel: return if this thread has no unit; compute seven gradients for each of its rows.
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= S) return;
  for (int64_t row = blockIdx.y; row < B; row += gridDim.y) {
    const int64_t at = row * S + unit, at_gates = row * 3 * S + unit;
    const double reset = gates[at_gates];
    const double update = gates[at_gates + S];
    const double candidate = gates[at_gates + 2 * S];

    const double d_update = grad_h[at] * (h[at] - candidate) * d_sigmoid(update);
    const double d_candidate = grad_h[at] * (1 - update) * (1 - candidate * candidate);
    const double d_reset = d_candidate * from_h[at_gates + 2 * S] * d_sigmoid(reset);
    d_h[at] = grad_h[at] * update;
    d_from_input[at_gates] = d_from_h[at_gates] = d_reset;
    d_from_input[at_gates + S] = d_from_h[at_gates + S] = d_update;
    d_from_input[at_gates + 2 * S] = d_candidate;
    d_from_h[at_gates + 2 * S] = d_candidate * reset;
  }
  // END SOLUTION
}

// A grid may have at most `most_rows` blocks in y.
void launch_gru_backward(double* d_from_input, double* d_from_h, double* d_h, const double* grad_h,
                         const double* gates, const double* from_h, const double* h, int64_t B, int64_t S,
                         int64_t most_rows) {
  const dim3 grid((S + kThreads - 1) / kThreads, std::min(B, most_rows));
  gru_backward_kernel<<<grid, kThreads>>>(d_from_input, d_from_h, d_h, grad_h, gates, from_h, h, B, S);
}

// Allocates memory for host and device. With `words`, fills it with the next numbers of the command line.
double* numbers(int64_t count, char*** words = nullptr) {
  double* x;
  cudaMallocManaged(&x, count * sizeof(double));
  for (int64_t k = 0; words && k < count; ++k) x[k] = std::atof(*(*words)++);
  return x;
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]);
  words += 3;
  double *grad_h = numbers(B * S, &words), *gates = numbers(B * 3 * S, &words);
  double *from_h = numbers(B * 3 * S, &words), *h = numbers(B * S, &words);
  double *d_from_input = numbers(B * 3 * S), *d_from_h = numbers(B * 3 * S), *d_h = numbers(B * S);
  int most_rows;
  cudaDeviceGetAttribute(&most_rows, cudaDevAttrMaxGridDimY, 0);

  launch_gru_backward(d_from_input, d_from_h, d_h, grad_h, gates, from_h, h, B, S, most_rows);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < B * 3 * S; ++k) std::printf("%.17g\n", d_from_input[k]);
  for (int64_t k = 0; k < B * 3 * S; ++k) std::printf("%.17g\n", d_from_h[k]);
  for (int64_t k = 0; k < B * S; ++k) std::printf("%.17g\n", d_h[k]);
  for (double* memory : {d_from_input, d_from_h, d_h, grad_h, gates, from_h, h}) cudaFree(memory);
}
