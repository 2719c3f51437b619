// Inline PTX: cp.async, copies to shared memory that arrive while the block computes
// Support: yes
#include <cstdint>
#include <cstdio>

constexpr int kThreads = 64, kTile = 4 * kThreads, kTiles = 5, kLast = 10;  // elements of the last tile

#define CP_ASYNC_16(to, from, bytes)                                                                       \
  asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;\n" ::"r"(to), "l"(from), "r"(bytes) \
               : "memory")
#define CP_ASYNC_COMMIT() asm volatile("cp.async.commit_group;\n" ::: "memory")
template <int pending>
__device__ void wait_group() {
  asm volatile("cp.async.wait_group %0;\n" ::"n"(pending) : "memory");
}

// Each thread copies 16 bytes of each tile; behind the end of the input, zeros arrive.
__global__ void sum_tiles(float* sums, const float* in, int n) {
  __shared__ alignas(16) float tile[2][kTile];
  const auto start = [&](int t) {
    const int first = t * kTile + 4 * threadIdx.x, left = n - first;
    const int bytes = left >= 4 ? 16 : left > 0 ? left * 4 : 0;
    if (t < kTiles)
      CP_ASYNC_16(uint32_t(__cvta_generic_to_shared(&tile[t % 2][4 * threadIdx.x])), in + (bytes ? first : 0),
                  bytes);
    CP_ASYNC_COMMIT();
  };
  start(0);
  for (int t = 0; t < kTiles; t++) {
    start(t + 1);
    wait_group<1>();
    __syncthreads();
    float sum = 0;  // of elements that other threads have copied
    for (int i = 0; i < 4; i++) sum += tile[t % 2][threadIdx.x + i * kThreads];
    sums[t * kThreads + threadIdx.x] = sum;
    __syncthreads();
  }
  asm volatile("cp.async.wait_all;");
}

int main() {
  constexpr int kElements = (kTiles - 1) * kTile + kLast;
  float *in, *sums;
  cudaMallocManaged(&in, kElements * sizeof(float));
  cudaMallocManaged(&sums, kTiles * kThreads * sizeof(float));
  for (int i = 0; i < kElements; i++) in[i] = i;
  sum_tiles<<<1, kThreads>>>(sums, in, kElements);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (int t = 0; t < kTiles; t++)
    for (int thread = 0; thread < kThreads; thread++) {
      float expected = 0;
      for (int i = 0; i < 4; i++) {
        const int at = t * kTile + thread + i * kThreads;
        expected += at < kElements ? in[at] : 0;
      }
      const float got = sums[t * kThreads + thread];
      if (got != expected)
        return std::fprintf(stderr, "sum %d of tile %d: got %g, expected %g\n", thread, t, got, expected), 1;
    }
  cudaFree(in);
  cudaFree(sums);
  return 0;
}
