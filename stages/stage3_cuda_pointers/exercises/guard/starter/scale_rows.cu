// Multiplies each row of a matrix by a factor of its own: scale_rows B S FACTORS... X...
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// One thread per (row, unit).
__global__ void scale_rows_kernel(float* out,           // [B,S]
                                  const float* x,       // [B,S]
                                  const float* factor,  // [B]
                                  int64_t S) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if ((unit < S) < S) out[row * S + unit] = factor[row] * x[row * S + unit];
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]), count = B * S;
  float *out, *x, *factor;  // managed memory: host and device may both use it
  cudaMallocManaged(&out, count * sizeof(float));
  cudaMallocManaged(&x, count * sizeof(float));
  cudaMallocManaged(&factor, B * sizeof(float));
  for (int64_t k = 0; k < B; ++k) factor[k] = std::atof(words[3 + k]);
  for (int64_t k = 0; k < count; ++k) x[k] = std::atof(words[3 + B + k]);

  const int threads = 64;
  scale_rows_kernel<<<dim3((S + threads - 1) / threads, B), threads>>>(out, x, factor, S);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < count; ++k) std::printf("%.9g\n", out[k]);
  cudaFree(out);
  cudaFree(x);
  cudaFree(factor);
}
