// Inline PTX: cp.async.bulk, copies of whole arrays and tensors (TMA)
// Support: refused: the emulator does not support the PTX instruction cp.async.bulk.shared::cluster.global
#include <cstdint>

__device__ uint32_t address_of(const void* shared) { return uint32_t(__cvta_generic_to_shared(shared)); }

// One thread copies a kilobyte; the barrier counts the bytes that arrive.
__global__ void copy(float* out, const float* in) {
  __shared__ alignas(128) float tile[256];
  __shared__ alignas(8) uint64_t arrived;
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(address_of(&arrived)));
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], 1024;" ::"r"(address_of(&arrived))
                 : "memory");
    asm volatile(
        "cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], 1024, [%2];" ::"r"(
            address_of(tile)),
        "l"(in), "r"(address_of(&arrived))
        : "memory");
  }
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() { return 0; }
