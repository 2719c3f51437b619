// SwiGLU, forward and backward: swiglu B S Z... GRAD...
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

__device__ float sigmoid(float z) { return 1 / (1 + expf(-z)); }

// One thread per (row, unit).
__global__ void forward_kernel(float* __restrict__ out,      // [B,S]
                               const float* __restrict__ z,  // [B,2S]: a, b
                               int64_t S) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= S) return;
  const float a = z[row * 2 * S + unit], b = z[row * 2 * S + S + unit];
  out[row * S + unit] = a * sigmoid(a) * b;
}

// One thread per (row, unit).
__global__ void backward_kernel(float* __restrict__ d_z,         // [B,2S]: d_a, d_b
                                const float* __restrict__ grad,  // [B,S]: of out
                                const float* __restrict__ z,     // [B,2S]
                                int64_t S) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit >= S) return;
  const float a = z[row * 2 * S + unit], b = z[row * 2 * S + S + unit];
  const float s = sigmoid(a), silu = a * s;
  const float g = grad[row * S + unit];
  d_z[row * 2 * S + unit] = g * b * (s + silu * (1 - s));
  d_z[row * 2 * S + S + unit] = g * silu;
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]);
  float *z, *grad, *out, *d_z;
  cudaMallocManaged(&z, B * 2 * S * sizeof(float));
  cudaMallocManaged(&grad, B * S * sizeof(float));
  cudaMallocManaged(&out, B * S * sizeof(float));
  cudaMallocManaged(&d_z, B * 2 * S * sizeof(float));
  for (int64_t k = 0; k < B * 2 * S; ++k) z[k] = std::atof(words[3 + k]);
  for (int64_t k = 0; k < B * S; ++k) grad[k] = std::atof(words[3 + B * 2 * S + k]);

  const int threads = 64;
  const dim3 grid((S + threads - 1) / threads, B);
  forward_kernel<<<grid, threads>>>(out, z, S);
  backward_kernel<<<grid, threads>>>(d_z, grad, z, S);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < B * S; ++k) std::printf("%.9g\n", out[k]);
  for (int64_t k = 0; k < B * 2 * S; ++k) std::printf("%.9g\n", d_z[k]);
  for (float* one : {z, grad, out, d_z}) cudaFree(one);
}
