// The backward pass of h = tanh(x + weights @ h) in one cluster: backward T S BLOCKS WEIGHTS... OUTPUTS...
// GRADS...
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>

#include "reduce_scatter.cuh"

// Each block owns `units` units, the last blocks fewer, or none.
__global__ void backward_kernel(float* d_x,                 // [T,S]
                                float* d_h0,                // [S]
                                const float* grad_outputs,  // [T,S]
                                const float* outputs,       // [T,S]
                                const float* weights,       // [S,S]
                                int units, int S, int T) {
  extern __shared__ float memory[];
  const auto cluster = cooperative_groups::this_cluster();
  float* const d_h = memory;         // [units]: of this block's units, after the step
  float* const d_z = d_h + units;    // [units]
  float* const part = d_z + units;   // [S]
  float* const received = part + S;  // [2,blocks,units]
  const int first = cluster.block_rank() * units, count = max(0, min(units, S - first));
  for (int i = threadIdx.x; i < count; i += blockDim.x) d_h[i] = 0;
  cluster.sync();  // all blocks have started
  for (int step = 0; step < T; ++step) {
    const int at = (T - 1 - step) * S + first;
    for (int i = threadIdx.x; i < count; i += blockDim.x) {
      d_z[i] = (d_h[i] + grad_outputs[at + i]) * (1 - outputs[at + i] * outputs[at + i]);
      d_x[at + i] = d_z[i];
    }
    __syncthreads();
    for (int k = threadIdx.x; k < S; k += blockDim.x) {
      float sum = 0;
      for (int i = 0; i < count; ++i) sum += d_z[i] * weights[(first + i) * S + k];
      part[k] = sum;
    }
    __syncthreads();
    reduce_scatter(d_h, part, received, count, units, S, step);
    __syncthreads();
  }
  for (int i = threadIdx.x; i < count; i += blockDim.x) d_h0[first + i] = d_h[i];
  cluster.sync();  // no block accesses another's memory any more
}

// Memory for `size` numbers. The first `given` are read from the command line.
float* numbers(int size, int given, char**& words) {
  float* x;
  cudaMallocManaged(&x, size * sizeof(float));
  for (int k = 0; k < given; ++k) x[k] = std::atof(*words++);
  return x;
}

int main(int, char** words) {
  const int T = std::atoi(words[1]), S = std::atoi(words[2]), blocks = std::atoi(words[3]);
  words += 4;
  float *weights = numbers(S * S, S * S, words), *outputs = numbers(T * S, T * S, words);
  float* grad_outputs = numbers(T * S, T * S, words);
  float *d_x = numbers(T * S, 0, words), *d_h0 = numbers(S, 0, words);

  const int units = (S + blocks - 1) / blocks;
  cudaLaunchAttribute cluster;
  cluster.id = cudaLaunchAttributeClusterDimension;
  cluster.val.clusterDim = {unsigned(blocks), 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks, config.blockDim = 32, config.attrs = &cluster, config.numAttrs = 1;
  config.dynamicSmemBytes = (2 * units + S + 2 * blocks * units) * sizeof(float);
  cudaLaunchKernelEx(&config, backward_kernel, d_x, d_h0, (const float*)grad_outputs, (const float*)outputs,
                     (const float*)weights, units, S, T);
  cudaDeviceSynchronize();

  for (int k = 0; k < T * S; ++k) std::printf("%.9g\n", d_x[k]);
  for (int k = 0; k < S; ++k) std::printf("%.9g\n", d_h0[k]);
  for (float* memory : {weights, outputs, grad_outputs, d_x, d_h0}) cudaFree(memory);
}
