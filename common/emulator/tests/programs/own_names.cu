// Functions whose names C++20 has added to std, in C++17, which is nvcc's default.
#include <cmath>
#include <cstdio>
#include <iterator>
#include <numeric>
using namespace std;
__host__ __device__ float lerp(float a, float b, float t) { return a + t * (b - a); }
__host__ __device__ float midpoint(float a, float b) { return (a + b) / 2; }
template <typename To, typename From>
__device__ To bit_cast(From x) {
  return *reinterpret_cast<To*>(&x);
}
__host__ __device__ int popcount(unsigned x) {
  int n = 0;
  for (; x; x &= x - 1) n++;
  return n;
}
__global__ void mix(float* out, const float* a, const float* b) {
  __shared__ float tile[32];
  const int i = threadIdx.x;
  tile[i] = lerp(a[i], b[i], 0.5f);
  __syncthreads();
  out[i] = tile[31 - i] + midpoint(1.0f, 3.0f) + popcount(7u) + bit_cast<int>(1.0f) * 0.0f;
}
int main() {
  float *a, *b, *out;
  float h[32];
  cudaMalloc(&a, 128);
  cudaMalloc(&b, 128);
  cudaMalloc(&out, 128);
  for (int i = 0; i < 32; i++) h[i] = i;
  cudaMemcpy(a, h, 128, cudaMemcpyHostToDevice);
  cudaMemcpy(b, h, 128, cudaMemcpyHostToDevice);
  mix<<<1, 32>>>(out, a, b);
  cudaMemcpy(h, out, 128, cudaMemcpyDeviceToHost);
  if (h[0] != 36) {
    printf("wrong: %f\n", h[0]);
    return 1;
  }
  cudaFree(a);
  cudaFree(b);
  cudaFree(out);
}
