// Inline PTX: clusters, with mapa, shared memory of other blocks, barriers and asynchronous stores
// Support: yes
#include <cuda_runtime.h>

#include <cstdint>
#include <cstdio>

constexpr int kBlocks = 4, kThreads = 32;

__device__ uint32_t address_of(const void* shared) { return uint32_t(__cvta_generic_to_shared(shared)); }

__device__ uint32_t address_in(uint32_t rank, uint32_t address) {
  uint32_t mapped;
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(address), "r"(rank));
  return mapped;
}

__device__ void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release.aligned;\n\tbarrier.cluster.wait.acquire.aligned;" ::
                   : "memory");
}

// Each block reads the numbers of the next one, and stores their sum asynchronously in the first.
__global__ void __cluster_dims__(kBlocks, 1, 1) rotate(int* out, int* sums) {
  __shared__ int numbers[kThreads];
  __shared__ alignas(8) uint64_t arrived;
  __shared__ int all_sums[kBlocks];
  uint32_t rank, size;
  asm volatile("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  asm volatile("mov.u32 %0, %%cluster_nctarank;" : "=r"(size));
  numbers[threadIdx.x] = 100 * rank + threadIdx.x;
  if (threadIdx.x == 0 && rank == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&arrived)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(address_of(&arrived)),
                 "r"(int(kBlocks * sizeof(int)))
                 : "memory");
  }
  cluster_barrier();
  int other;
  asm volatile("ld.shared::cluster.s32 %0, [%1];"
               : "=r"(other)
               : "r"(address_in((rank + 1) % size, address_of(&numbers[threadIdx.x]))));
  out[rank * kThreads + threadIdx.x] = other;
  int sum;
  asm volatile("redux.sync.add.s32 %0, %1, -1;" : "=r"(sum) : "r"(other));
  if (threadIdx.x == 0)
    asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.s32 [%0], %1, [%2];" ::"r"(
                     address_in(0, address_of(&all_sums[rank]))),
                 "r"(sum), "r"(address_in(0, address_of(&arrived)))
                 : "memory");
  if (rank == 0) {
    uint32_t is_done = 0;
    while (!is_done)
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], 0; selp.u32 %0, 1, 0, p;}"
          : "=r"(is_done)
          : "r"(address_of(&arrived))
          : "memory");
    if (threadIdx.x < kBlocks) sums[threadIdx.x] = all_sums[threadIdx.x];
  }
  cluster_barrier();  // no block ends while others access its shared memory
}

int main() {
  int *out, *sums, wrong = 0;
  cudaMallocManaged(&out, kBlocks * kThreads * sizeof(int));
  cudaMallocManaged(&sums, kBlocks * sizeof(int));
  rotate<<<kBlocks, kThreads>>>(out, sums);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (int block = 0; block < kBlocks; block++) {
    const int next = (block + 1) % kBlocks, sum = kThreads * 100 * next + kThreads * (kThreads - 1) / 2;
    for (int i = 0; i < kThreads; i++)
      if (out[block * kThreads + i] != 100 * next + i && !wrong++)
        std::fprintf(stderr, "out[%d][%d]: got %d, expected %d\n", block, i, out[block * kThreads + i],
                     100 * next + i);
    if (sums[block] != sum && !wrong++)
      std::fprintf(stderr, "sums[%d]: got %d, expected %d\n", block, sums[block], sum);
  }
  cudaFree(out);
  cudaFree(sums);
  return wrong != 0;
}
