// Inline PTX: loads and stores (vectors, cache hints, order), atomics, addresses of shared memory
// Support: yes
#include <cuda_fp16.h>

#include <cstdint>
#include <cstdio>

constexpr int kThreads = 64, kBlocks = 4;

__device__ __forceinline__ float4 load_once(const float4* address) {
  float4 value;
  asm volatile("ld.global.nc.L1::no_allocate.v4.f32 {%0, %1, %2, %3}, [%4];"
               : "=f"(value.x), "=f"(value.y), "=f"(value.z), "=f"(value.w)
               : "l"(address));
  return value;
}
__device__ __forceinline__ void store_streaming(float4* address, float4 value) {
  asm volatile("st.global.cs.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(address), "f"(value.x), "f"(value.y),
               "f"(value.z), "f"(value.w)
               : "memory");
}

// Each thread passes its vector on to its neighbour, through shared memory.
__global__ void rotate(float4* out, const float4* in) {
  __shared__ float4 tile[kThreads];
  const uint32_t base = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  const float4 own = load_once(in + threadIdx.x);
  const uint32_t mine = base + 16 * threadIdx.x, next = base + 16 * ((threadIdx.x + 1) % kThreads);
  asm volatile("st.shared.v2.f32 [%0], {%1, %2};" ::"r"(mine), "f"(own.x), "f"(own.y));
  asm volatile("st.shared.v2.f32 [%0+8], {%1, %2};" ::"r"(mine), "f"(own.z), "f"(own.w));
  asm volatile("bar.sync 0;" ::: "memory");
  float4 other;
  asm volatile("ld.shared.v4.b32 {%0, %1, %2, %3}, [%4];"
               : "=f"(other.x), "=f"(other.y), "=f"(other.z), "=f"(other.w)
               : "r"(next));
  store_streaming(out + threadIdx.x, other);
}

// The last block to arrive sees the numbers of all others: release and acquire.
__global__ void sum_blocks(int* total, int* numbers, unsigned* arrived) {
  if (threadIdx.x) return;
  asm volatile("st.global.u32 [%0], %1;" ::"l"(numbers + blockIdx.x), "r"(10 + blockIdx.x) : "memory");
  unsigned before;
  asm volatile("atom.acq_rel.gpu.global.add.u32 %0, [%1], 1;" : "=r"(before) : "l"(arrived) : "memory");
  if (before + 1 < gridDim.x) return;
  int sum = 0;
  for (unsigned i = 0; i < gridDim.x; i++) {
    int one;
    asm volatile("ld.global.ca.s32 %0, [%1];" : "=r"(one) : "l"(numbers + i));
    sum += one;
  }
  *total = sum;
}

// The second block waits for the flag of the first.
__global__ void pass_on(int* message, int* flag, int* received) {
  if (blockIdx.x == 0) {
    *message = 42;
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(flag) : "memory");
  } else {
    int is_set = 0;
    while (!is_set) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(is_set) : "l"(flag) : "memory");
    *received = *message;
  }
}

__global__ void atomics(int* sums, float* most, __half2* halves) {
  asm volatile("red.global.add.s32 [%0], %1;" ::"l"(sums), "r"(threadIdx.x) : "memory");
  asm volatile("red.relaxed.gpu.global.max.s32 [%0+4], %1;" ::"l"(sums), "r"(threadIdx.x) : "memory");
  int old;
  asm volatile("atom.global.cas.b32 %0, [%1], 0, %2;" : "=r"(old) : "l"(sums + 2), "r"(threadIdx.x + 1));
  asm volatile("atom.exch.b32 %0, [%1], %2;" : "=r"(old) : "l"(sums + 3), "r"(old ? 7 : 7));
  asm volatile("red.add.f32 [%0], %1;" ::"l"(most), "f"(0.5f) : "memory");
  asm volatile("red.global.add.noftz.f16x2 [%0], %1;" ::"l"(halves), "r"(0x3c004000) : "memory");  // (2, 1)
}

int expect(const char* what, int i, double got, double expected) {
  if (got == expected) return 0;
  return std::fprintf(stderr, "%s %d: got %g, expected %g\n", what, i, got, expected), 1;
}

template <typename T>
T* zeros(int count) {
  T* memory;
  cudaMallocManaged(&memory, count * sizeof(T));
  cudaMemset(memory, 0, count * sizeof(T));
  return memory;
}

int main() {
  float *in = zeros<float>(4 * kThreads), *out = zeros<float>(4 * kThreads), *most = zeros<float>(1);
  int *total = zeros<int>(1), *numbers = zeros<int>(kBlocks), *sums = zeros<int>(4), *flags = zeros<int>(3);
  unsigned* arrived = zeros<unsigned>(1);
  __half2* halves = zeros<__half2>(1);
  cudaDeviceSynchronize();
  for (int i = 0; i < 4 * kThreads; i++) in[i] = i;
  rotate<<<1, kThreads>>>((float4*)out, (const float4*)in);
  sum_blocks<<<kBlocks, 32>>>(total, numbers, arrived);
  pass_on<<<2, 1>>>(flags, flags + 1, flags + 2);
  atomics<<<1, kThreads>>>(sums, most, halves);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < 4 * kThreads; i++) wrong |= expect("out", i, out[i], (i + 4) % (4 * kThreads));
  wrong |= expect("total", 0, *total, 10 + 11 + 12 + 13);
  wrong |= expect("received", 0, flags[2], 42);
  wrong |= expect("sums", 0, sums[0], kThreads * (kThreads - 1) / 2);
  wrong |= expect("sums", 1, sums[1], kThreads - 1);
  wrong |= expect("swapped once", 2, sums[2] >= 1 && sums[2] <= kThreads, 1);
  wrong |= expect("exchanged", 3, sums[3], 7);
  wrong |= expect("most", 0, *most, kThreads / 2);
  wrong |= expect("low halves", 0, __low2float(*halves), 2 * kThreads);
  wrong |= expect("high halves", 0, __high2float(*halves), kThreads);
  for (void* memory : {(void*)in, (void*)out, (void*)most, (void*)total, (void*)numbers, (void*)sums,
                       (void*)flags, (void*)arrived, (void*)halves})
    cudaFree(memory);
  return wrong;
}
