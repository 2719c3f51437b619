// The sum of squares of each row of a matrix: squares B S X...
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>

// One thread per (row, unit) of `padded`, which is a copy of x with longer rows.
__global__ void pad_kernel(float* padded,   // [B,P]
                           const float* x,  // [B,S]
                           int64_t S, int64_t P) {
  const int64_t unit = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (unit < S) padded[row * P + unit] = x[row * S + unit];
}

// One thread per row and four units.
__global__ void add_squares_kernel(float* sums,           // [B]
                                   const float4* padded,  // [B,P/4]
                                   int64_t fours) {       // P/4
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x, row = blockIdx.y;
  if (k >= fours) return;
  const float4 four = padded[row * fours + k];
  atomicAdd(&sums[row], four.x * four.x + four.y * four.y + four.z * four.z + four.w * four.w);
}

int main(int, char** words) {
  const int64_t B = std::atoll(words[1]), S = std::atoll(words[2]), P = (S + 3) / 4 * 4;
  float *sums, *x, *padded;
  cudaMallocManaged(&sums, B * sizeof(float));
  cudaMallocManaged(&x, B * S * sizeof(float));
  cudaMallocManaged(&padded, B * P * sizeof(float));
  for (int64_t k = 0; k < B * S; ++k) x[k] = std::atof(words[3 + k]);

  const int threads = 64;
  const dim3 grid((P + threads - 1) / threads, B);
  pad_kernel<<<grid, threads>>>(padded, x, S, P);
  add_squares_kernel<<<grid, threads>>>(sums, reinterpret_cast<float4*>(padded), P / 4);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < B; ++k) std::printf("%.9g\n", sums[k]);
  cudaFree(sums);
  cudaFree(x);
  cudaFree(padded);
}
