// What the emulator takes for each thread, barrier, shuffle and access of a kernel, and for a product of two
// matrices. Each line of output is a name, the seconds and the CPU seconds of one launch, and the number of
// operations in it. With an argument it computes only the product, of 512x512 matrices.
#include <cuda_runtime.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

constexpr int kBlocks = 8, kManyBlocks = 128, kThreads = 256, kTile = 16, kRepetitions = 10;
constexpr int kOperations = 256;  // of each thread

__global__ void threads(float* out) {
  if (blockIdx.x == gridDim.x) out[threadIdx.x] = 0;
}

__global__ void barriers(float*) {
  for (int i = 0; i < kOperations; i++) __syncthreads();
}

__global__ void shuffles(float* out) {
  float sum = float(threadIdx.x);
  for (int i = 0; i < kOperations; i++) sum += __shfl_xor_sync(0xffffffff, sum, 1 + i % 31);
  if (sum < 0) out[threadIdx.x] = sum;
}

__global__ void neighbouring_reads(float* memory) {
  float sum = 0;
  for (int i = 0; i < kOperations; i++) sum += memory[i * kThreads + threadIdx.x];
  if (sum > 0) memory[threadIdx.x] = sum;
}

__global__ void broadcast_reads(float* memory) {
  float sum = 0;
  for (int i = 0; i < kOperations; i++) sum += memory[i];
  if (sum > 0) memory[threadIdx.x] = sum;
}

__global__ void shared_reads(float* out) {
  __shared__ float tile[kOperations + kThreads];
  for (int i = threadIdx.x; i < kOperations + kThreads; i += kThreads) tile[i] = 0;
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < kOperations; i++) sum += tile[i + threadIdx.x];
  if (sum > 0) out[threadIdx.x] = sum;
}

__global__ void atomics(float* memory) {
  for (int i = 0; i < kOperations; i++) atomicAdd(&memory[threadIdx.x], 0.0f);
}

// Sums 256 elements in each block by halves, with a barrier after each step.
__global__ void block_sum(float* memory) {
  __shared__ float values[kThreads];
  values[threadIdx.x] = memory[blockIdx.x * kThreads + threadIdx.x];
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) memory[blockIdx.x * kThreads] = values[0];
}

// The same by shuffles within warps.
__global__ void warp_sum(float* memory) {
  float sum = memory[blockIdx.x * kThreads + threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  if (threadIdx.x % 32 == 0) memory[blockIdx.x * kThreads + threadIdx.x] = sum;
}

__global__ void naive_product(float* c, const float* a, const float* b, int n) {
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k++) sum += a[row * n + k] * b[k * n + col];
  c[row * n + col] = sum;
}

__global__ void tiled_product(float* c, const float* a, const float* b, int n) {
  __shared__ float tile_a[kTile][kTile], tile_b[kTile][kTile];
  const int row = blockIdx.y * kTile + threadIdx.y, col = blockIdx.x * kTile + threadIdx.x;
  float sum = 0;
  for (int k = 0; k < n; k += kTile) {
    tile_a[threadIdx.y][threadIdx.x] = a[row * n + k + threadIdx.x];
    tile_b[threadIdx.y][threadIdx.x] = b[(k + threadIdx.y) * n + col];
    __syncthreads();
    for (int i = 0; i < kTile; i++) sum += tile_a[threadIdx.y][i] * tile_b[i][threadIdx.x];
    __syncthreads();
  }
  c[row * n + col] = sum;
}

double seconds(clockid_t clock) {
  timespec now;
  clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

template <typename Launch>
void time(const char* name, int repetitions, double operations, Launch launch) {
  double best = 1e9, best_of_cpu = 1e9;
  for (int repetition = 0; repetition < repetitions; repetition++) {
    const double start = seconds(CLOCK_MONOTONIC), start_of_cpu = seconds(CLOCK_PROCESS_CPUTIME_ID);
    launch();
    cudaDeviceSynchronize();
    best = std::min(best, seconds(CLOCK_MONOTONIC) - start);
    best_of_cpu = std::min(best_of_cpu, seconds(CLOCK_PROCESS_CPUTIME_ID) - start_of_cpu);
  }
  std::printf("%s,%.9f,%.9f,%.0f\n", name, best, best_of_cpu, operations);
}

int main(int count, char**) {
  const bool is_large = count > 1;
  const int n = is_large ? 512 : 128;
  const std::size_t bytes = std::max(std::size_t(n) * n, std::size_t(kOperations) * kThreads) * sizeof(float);
  float *a, *b, *c;
  cudaMalloc(&a, bytes);
  cudaMalloc(&b, bytes);
  cudaMalloc(&c, bytes);
  cudaMemset(a, 0, bytes);
  cudaMemset(b, 0, bytes);
  const dim3 grid(n / kTile, n / kTile), block(kTile, kTile);
  if (is_large) {
    time("naive and tiled product of 512x512 matrices", 1, 1, [&] {
      naive_product<<<grid, block>>>(c, a, b, n);
      tiled_product<<<grid, block>>>(c, a, b, n);
    });
  } else {
    // One operation of each thread, or kOperations of them.
    const auto time_one = [&](const char* name, void (*kernel)(float*)) {
      time(name, kRepetitions, kManyBlocks * kThreads, [&] { kernel<<<kManyBlocks, kThreads>>>(a); });
    };
    const auto time_loop = [&](const char* name, void (*kernel)(float*)) {
      time(name, kRepetitions, kBlocks * kThreads * kOperations, [&] { kernel<<<kBlocks, kThreads>>>(a); });
    };
    time_one("thread", threads);
    time_loop("barrier, by thread", barriers);
    time_loop("shuffle, by thread", shuffles);
    time_loop("read of neighbouring elements", neighbouring_reads);
    time_loop("read of the same element by all threads", broadcast_reads);
    time_loop("read of shared memory", shared_reads);
    time_loop("atomicAdd", atomics);
    time_one("sum of a block with barriers, by thread", block_sum);
    time_one("sum of a warp with shuffles, by thread", warp_sum);
    const double products = double(n) * n * n;
    time("multiplication in a naive product", 3, products,
         [&] { naive_product<<<grid, block>>>(c, a, b, n); });
    time("multiplication in a tiled product", 3, products,
         [&] { tiled_product<<<grid, block>>>(c, a, b, n); });
  }
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}
