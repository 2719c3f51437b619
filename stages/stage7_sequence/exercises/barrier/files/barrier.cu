// A recurrence in one launch, with a barrier of its own: barrier S T H... WEIGHTS...
#include <cuda_runtime.h>

#include <cuda/atomic>

#include <cstdio>
#include <cstdlib>

// Returns when all blocks have called it for barrier t, and their writes before it are visible.
__device__ void wait_for_all(unsigned* arrivals,  // 0 at launch, counts the arrivals at all barriers
                             unsigned t) {
  // BEGIN SOLUTION: one thread per block arrives, then waits until all blocks have arrived at barrier t.
  __syncthreads();
  if (threadIdx.x == 0) {
    const cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*arrivals);
    counter.fetch_add(1, cuda::memory_order_release);
    while (counter.load(cuda::memory_order_acquire) < (t + 1) * gridDim.x) {
    }
  }
  __syncthreads();
  // END SOLUTION
}

// One thread per unit. All blocks run at once, and stay for all steps.
__global__ void steps(float* state,          // [2,S]: the initial state is in state[0]
                      const float* weights,  // [S,S]
                      unsigned* arrivals, int S, int T) {
  const int unit = blockIdx.x * blockDim.x + threadIdx.x;
  for (int t = 0; t < T; t++) {
    const float* old_h = state + t % 2 * S;
    float* new_h = state + (t + 1) % 2 * S;
    if (unit < S) {
      float sum = 0;
      for (int k = 0; k < S; k++) sum += weights[unit * S + k] * old_h[k];
      new_h[unit] = tanhf(sum);
    }
    wait_for_all(arrivals, t);
  }
}

int main(int, char** words) {
  int S = std::atoi(words[1]), T = std::atoi(words[2]);
  float *state, *weights;
  unsigned* arrivals;
  cudaMallocManaged(&state, 2 * S * sizeof(float));
  cudaMallocManaged(&weights, S * S * sizeof(float));
  cudaMallocManaged(&arrivals, sizeof(unsigned));
  *arrivals = 0;
  for (int k = 0; k < S; k++) state[k] = std::atof(words[3 + k]);
  for (int k = 0; k < S * S; k++) weights[k] = std::atof(words[3 + S + k]);

  const int threads = 64;
  void* arguments[] = {&state, &weights, &arrivals, &S, &T};
  cudaLaunchCooperativeKernel((void*)steps, (S + threads - 1) / threads, threads, arguments, 0, nullptr);
  cudaDeviceSynchronize();

  for (int k = 0; k < S; k++) std::printf("%.9g\n", state[T % 2 * S + k]);
  std::printf("%u\n", *arrivals);
  cudaFree(state);
  cudaFree(weights);
  cudaFree(arrivals);
}
