// A recurrence in one launch: steps S T H... WEIGHTS...
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#include <cstdio>
#include <cstdlib>

namespace cg = cooperative_groups;

// The next value of a unit.
__device__ float next_value(const float* old_h,    // [S]
                            const float* weights,  // [S,S]
                            int unit, int S) {
  float sum = 0;
  for (int k = 0; k < S; k++) sum += weights[unit * S + k] * old_h[k];
  return tanhf(sum);
}

// One thread per unit. All blocks run at once, and stay for all steps.
__global__ void steps(float* state,          // [2,S]: the initial state is in state[0]
                      const float* weights,  // [S,S]
                      int S, int T) {
  const cg::grid_group grid = cg::this_grid();
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  // BEGIN SOLUTION loop: compute all T steps. Which buffer is read and which one written in step t?
  for (int t = 0; t < T; t++) {
    const float* old_h = state + t % 2 * S;
    float* new_h = state + (t + 1) % 2 * S;
    if (unit < S) new_h[unit] = next_value(old_h, weights, unit, S);
    grid.sync();
  }
  // END SOLUTION
}

// The buffer with the state after T steps.
const float* final_state(const float* state, int S, int T) {
  // BEGIN SOLUTION final: return the buffer that the last step has written.
  return state + T % 2 * S;
  // BEGIN STARTER
  // return state;
  // END STARTER
  // END SOLUTION
}

int main(int, char** words) {
  int S = std::atoi(words[1]), T = std::atoi(words[2]);
  float *state, *weights;
  cudaMallocManaged(&state, 2 * S * sizeof(float));
  cudaMallocManaged(&weights, S * S * sizeof(float));
  for (int k = 0; k < S; k++) state[k] = std::atof(words[3 + k]);
  for (int k = 0; k < S * S; k++) weights[k] = std::atof(words[3 + S + k]);

  const int threads = 32;
  void* arguments[] = {&state, &weights, &S, &T};
  cudaLaunchCooperativeKernel((void*)steps, (S + threads - 1) / threads, threads, arguments, 0, nullptr);
  cudaDeviceSynchronize();

  const float* h = final_state(state, S, T);
  for (int k = 0; k < S; k++) std::printf("%.9g\n", h[k]);
  cudaFree(state);
  cudaFree(weights);
}
