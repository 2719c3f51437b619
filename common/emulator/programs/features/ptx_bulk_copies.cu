// Inline PTX: cp.async.bulk, copies of whole arrays to and from shared memory
// Support: yes
#include <cstdint>
#include <cstdio>

constexpr int kCount = 256;

__device__ uint32_t address_of(const void* shared) { return uint32_t(__cvta_generic_to_shared(shared)); }

// One thread copies a kilobyte; the barrier counts the bytes that arrive. Then one thread copies the result back.
__global__ void twice(int* out, const int* in) {
  __shared__ alignas(128) int tile[kCount];
  __shared__ alignas(8) uint64_t arrived;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&arrived)));
    asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(address_of(&arrived))
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(
            address_of(tile)),
        "l"(in + blockIdx.x * kCount), "r"(address_of(&arrived))
        : "memory");
  }
  __syncthreads();
  asm volatile(
      "{\n\t"
      ".reg .pred is_done;\n"
      "WAIT:\n\t"
      "mbarrier.try_wait.parity.shared::cta.b64 is_done, [%0], 0;\n\t"
      "@!is_done bra WAIT;\n\t}" ::"r"(address_of(&arrived))
      : "memory");
  tile[threadIdx.x] *= 2;
  asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
  __syncthreads();
  if (threadIdx.x == 0) {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(out + blockIdx.x * kCount),
        "r"(address_of(tile)), "r"(uint32_t(sizeof(tile)))
        : "memory");
    asm volatile("cp.async.bulk.commit_group;" ::: "memory");
    asm volatile("cp.async.bulk.wait_group.read 0;" ::: "memory");
  }
}

int main() {
  constexpr int kBlocks = 3;
  int *out, *in;
  cudaMallocManaged(&out, kBlocks * kCount * sizeof(int));
  cudaMallocManaged(&in, kBlocks * kCount * sizeof(int));
  for (int i = 0; i < kBlocks * kCount; i++) in[i] = i;
  twice<<<kBlocks, kCount>>>(out, in);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < kBlocks * kCount; i++)
    if (out[i] != 2 * i && !wrong++) std::fprintf(stderr, "got %d, expected %d\n", out[i], 2 * i);
  cudaFree(out);
  cudaFree(in);
  return wrong != 0;
}
