// out = gate * tanh(b) + (1 - gate) * x, gate = sigmoid(a), of many numbers: highway COUNT A... B... X...
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 128;

// One thread per element. Reads 3 numbers, writes 1. All arrays are [count].
__global__ void highway_kernel(float* out, const float* a, const float* b, const float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k >= count) return;
  const float gate = 1 / (1 + std::exp(-a[k]));
  out[k] = gate * std::tanh(b[k]) + (1 - gate) * x[k];
}

void launch_highway(float* out, const float* a, const float* b, const float* x, int64_t count) {
  highway_kernel<<<(count + kThreads - 1) / kThreads, kThreads>>>(out, a, b, x, count);
}

float* numbers(char** words, int64_t count) {
  float* x;
  cudaMallocManaged(&x, count * sizeof(float));
  for (int64_t k = 0; words && k < count; ++k) x[k] = std::atof(words[k]);
  return x;
}

int main(int, char** words) {
  const int64_t count = std::atoll(words[1]);
  float *out = numbers(nullptr, count), *a = numbers(words + 2, count);
  float *b = numbers(words + 2 + count, count), *x = numbers(words + 2 + 2 * count, count);

  launch_highway(out, a, b, x, count);
  cudaDeviceSynchronize();

  for (int64_t k = 0; k < count; ++k) std::printf("%.9g\n", out[k]);
  for (float* memory : {out, a, b, x}) cudaFree(memory);
}
