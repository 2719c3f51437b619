// out = gate * tanh(b) + (1 - gate) * x, gate = sigmoid(a), of many numbers: highway COUNT A... B... X...
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

constexpr int kThreads = 128;

__global__ void sigmoid_kernel(float* out, const float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = 1 / (1 + std::exp(-x[k]));
}

__global__ void tanh_kernel(float* out, const float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = std::tanh(x[k]);
}

__global__ void one_minus_kernel(float* out, const float* x, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = 1 - x[k];
}

__global__ void multiply_kernel(float* out, const float* x, const float* y, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = x[k] * y[k];
}

__global__ void add_kernel(float* out, const float* x, const float* y, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = x[k] + y[k];
}

// All arrays are [count].
void launch_highway(float* out, const float* a, const float* b, const float* x, int64_t count) {
  const int64_t blocks = (count + kThreads - 1) / kThreads;
  float *gate, *candidate, *rest;
  for (float** memory : {&gate, &candidate, &rest}) cudaMalloc(memory, count * sizeof(float));
  sigmoid_kernel<<<blocks, kThreads>>>(gate, a, count);
  tanh_kernel<<<blocks, kThreads>>>(candidate, b, count);
  multiply_kernel<<<blocks, kThreads>>>(candidate, gate, candidate, count);
  one_minus_kernel<<<blocks, kThreads>>>(rest, gate, count);
  multiply_kernel<<<blocks, kThreads>>>(rest, rest, x, count);
  add_kernel<<<blocks, kThreads>>>(out, candidate, rest, count);
  for (float* memory : {gate, candidate, rest}) cudaFree(memory);
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
