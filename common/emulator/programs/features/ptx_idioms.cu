// Inline PTX: idioms of larger libraries, such as predicated copies, packed conversions and addresses
// Support: yes
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

constexpr int kThreads = 32;

__device__ uint32_t shared_pointer_of(const void* pointer) {
  uint32_t address;
  asm("{ .reg .u64 wide; cvta.to.shared.u64 wide, %1; cvt.u32.u64 %0, wide; }"
      : "=r"(address)
      : "l"(pointer));
  return address;
}

// Copies if a condition holds, and else stores zeros.
#define COPY_OR_ZERO(to, from, condition)                \
  asm volatile(                                          \
      "{\n"                                              \
      "  .reg .pred p;\n"                                \
      "  setp.ne.b32 p, %0, 0;\n"                        \
      "  @p cp.async.ca.shared.global [%1], [%2], %3;\n" \
      "  @!p st.shared.v4.u32 [%1], {%4, %4, %4, %4};\n" \
      "}\n" ::"r"((int)(condition)),                     \
      "r"(to), "l"(from), "n"(16), "r"(0))

__device__ uint32_t pack(float low, float high) {
  uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;\n" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}

__device__ float2 unpack(uint32_t packed) {
  float2 both;
  asm("{\n\t.reg .b16 low, high;\n\tmov.b32 {low, high}, %2;\n\tcvt.f32.bf16 %0, low;\n\tcvt.f32.bf16 %1, "
      "high;\n\t}"
      : "=f"(both.x), "=f"(both.y)
      : "r"(packed));
  return both;
}

// One thread spins until another has released a lock; each adds one to a number that is not atomic.
__device__ void lock(int* mutex) {
  asm volatile(
      "{\n\t.reg .pred taken;\n\t.reg .b32 old;\n"
      "AGAIN:\n\t"
      "atom.acquire.gpu.global.cas.b32 old, [%0], 0, 1;\n\t"
      "setp.ne.s32 taken, old, 0;\n\t"
      "@taken bra.uni AGAIN;\n\t}" ::"l"(mutex)
      : "memory");
}
__device__ void unlock(int* mutex) {
  asm volatile("st.release.gpu.global.s32 [%0], %1;" ::"l"(mutex), "r"(0) : "memory");
}

__global__ void idioms(int* out, float* rounded, const int* in, int n) {
  __shared__ alignas(16) int tile[4 * kThreads];
  const int i = threadIdx.x;
  COPY_OR_ZERO(shared_pointer_of(&tile[4 * i]), in + 4 * i, 4 * i < n);
  asm volatile("cp.async.commit_group;\n\tcp.async.wait_group 0;" ::: "memory");
  __syncthreads();
  asm("dp4a.s32.s32 %0, %1, %2, %3;"
      : "=r"(out[i])
      : "r"(tile[4 * kThreads - 1 - i]), "r"(0x01010101), "r"(100));
  const float2 both = unpack(pack(1.0f + i / 256.0f, -i));
  rounded[2 * i] = both.x;
  rounded[2 * i + 1] = both.y;
}

__global__ void count(int* mutex, int* number) {
  lock(mutex);
  ++*number;
  unlock(mutex);
}

int expect(const char* what, int i, double got, double expected) {
  if (got == expected) return 0;
  return std::fprintf(stderr, "%s %d: got %g, expected %g\n", what, i, got, expected), 1;
}

int main() {
  constexpr int kCount = 100, kBlocks = 3;
  int *in, *out, *mutex, *number;
  float* rounded;
  cudaMallocManaged(&in, kCount * sizeof(int));
  cudaMallocManaged(&out, kThreads * sizeof(int));
  cudaMallocManaged(&rounded, 2 * kThreads * sizeof(float));
  cudaMallocManaged(&mutex, sizeof(int));
  cudaMallocManaged(&number, sizeof(int));
  for (int i = 0; i < kCount; i++) in[i] = i;
  *mutex = *number = 0;
  idioms<<<1, kThreads>>>(out, rounded, in, kCount);
  count<<<kBlocks, 1>>>(mutex, number);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = expect("number", 0, *number, kBlocks);
  for (int i = 0; i < kThreads; i++) {
    const int at = 4 * kThreads - 1 - i;
    wrong |= expect("out", i, out[i], 100 + (at < kCount ? at : 0));
    wrong |= expect("rounded", i, rounded[2 * i], 1 + std::nearbyint(i / 2.0) / 128);
    wrong |= expect("rounded", i, rounded[2 * i + 1], -i);
  }
  for (void* memory : {(void*)in, (void*)out, (void*)rounded, (void*)mutex, (void*)number}) cudaFree(memory);
  return wrong;
}
