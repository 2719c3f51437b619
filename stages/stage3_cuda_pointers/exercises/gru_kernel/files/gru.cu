// The pointwise part of a GRU cell: gru B S FROM_INPUT... FROM_H... H...
#include <cuda_runtime.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 64;

__device__ double sigmoid(double z) { return 1 / (1 + std::exp(-z)); }

// One thread per (row, unit).
__global__ void gru_kernel(double* __restrict__ new_h,             // [B,S]
                           const double* __restrict__ from_input,  // [B,3S]: reset, update, candidate
                           const double* __restrict__ from_h,      // [B,3S], same order
                           const double* __restrict__ h,           // [B,S]
                           int64_t B, int64_t S) {
  // BEGIN SOLUTION kernel: return if this thread has no unit; compute new_h for each of its rows.
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (unit >= S) return;
  for (int64_t row = blockIdx.y; row < B; row += gridDim.y) {
    const int64_t at = row * S + unit, at_gates = row * 3 * S + unit;
    const double reset = sigmoid(from_input[at_gates] + from_h[at_gates]);
    const double update = sigmoid(from_input[at_gates + S] + from_h[at_gates + S]);
    const double candidate = std::tanh(from_input[at_gates + 2 * S] + reset * from_h[at_gates + 2 * S]);
    new_h[at] = (1 - update) * candidate + update * h[at];
  }
  // END SOLUTION
}

// A grid may have at most `most_rows` blocks in y.
void launch_gru(double* new_h, const double* from_input, const double* from_h, const double* h, int64_t B,
                int64_t S, int64_t most_rows) {
  // BEGIN SOLUTION launch: launch gru_kernel with blocks of kThreads.
  const dim3 grid((S + kThreads - 1) / kThreads, std::min(B, most_rows));
  gru_kernel<<<grid, kThreads>>>(new_h, from_input, from_h, h, B, S);
  // END SOLUTION
}

// Allocates memory for host and device. With `words`, fills it with numbers of the command line.
double* numbers(int64_t count, char** words = nullptr) {
  double* x;
  cudaMallocManaged(&x, count * sizeof(double));
  for (int64_t k = 0; words && k < count; ++k) x[k] = std::atof(words[k]);
  return x;
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]);
  double *new_h = numbers(B * S), *from_input = numbers(B * 3 * S, words + 3);
  double *from_h = numbers(B * 3 * S, words + 3 + B * 3 * S), *h = numbers(B * S, words + 3 + B * 6 * S);
  int most_rows;
  cudaDeviceGetAttribute(&most_rows, cudaDevAttrMaxGridDimY, 0);

  launch_gru(new_h, from_input, from_h, h, B, S, most_rows);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < B * S; ++k) std::printf("%.17g\n", new_h[k]);
  for (double* memory : {new_h, from_input, from_h, h}) cudaFree(memory);
}
