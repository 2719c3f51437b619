// The cost of a CUDA thread on the emulator: nanoseconds by kind of kernel and threads per block. Not a test,
// because times vary.
//   cmake --build build/cpp --target benchmark && build/cpp/benchmark
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>

__global__ void plain_kernel(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = 2 * in[i];
}

__global__ void barrier_kernel(float* out, const float* in, int barriers) {
  extern __shared__ float values[];
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  values[threadIdx.x] = in[i];
  for (int b = 0; b < barriers; b++) __syncthreads();
  out[i] = values[blockDim.x - 1 - threadIdx.x];
}

__global__ void warp_sum_kernel(float* out, const float* in, int) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float sum = in[i];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_xor_sync(0xffffffff, sum, offset);
  out[i] = sum;
}

template <typename Launch>
void time(const char* name, int threads, int in_block, Launch launch) {
  double best = 1e9;
  for (int repetition = 0; repetition < 5; repetition++) {
    const auto start = std::chrono::steady_clock::now();
    launch();
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  std::printf("%-28s %8d threads, %4d a block: %8.1f ns a thread, %9.3f ms\n", name, threads, in_block,
              best / threads * 1e9, best * 1e3);
}

int main() {
  const int n = 1 << 20;
  float *in, *out;
  cudaMalloc(&in, n * sizeof(float));
  cudaMalloc(&out, n * sizeof(float));
  cudaMemset(in, 0, n * sizeof(float));
  time("empty launch", 1, 1, [&] { plain_kernel<<<1, 1>>>(out, in, 0); });
  for (int block : {32, 256, 1024}) {
    time("no barrier", n, block, [&] { plain_kernel<<<n / block, block>>>(out, in, n); });
    time("one barrier", n, block, [&] { barrier_kernel<<<n / block, block, block * 4>>>(out, in, 1); });
    time("ten barriers", n, block, [&] { barrier_kernel<<<n / block, block, block * 4>>>(out, in, 10); });
    time("warp sum, five shuffles", n, block, [&] { warp_sum_kernel<<<n / block, block>>>(out, in, 0); });
  }
}
