// Inline PTX: cp.async.bulk.tensor, copies of tiles that a tensor map describes (TMA)
// Support: refused: the emulator does not support the PTX instruction cp.async.bulk.tensor.1d.shared::cluster.global
#include <cstdint>

__device__ uint32_t address_of(const void* shared) { return uint32_t(__cvta_generic_to_shared(shared)); }

__global__ void copy(float* out, const void* map) {
  __shared__ alignas(128) float tile[256];
  __shared__ alignas(8) uint64_t arrived;
  if (threadIdx.x == 0)
    asm volatile(
        "cp.async.bulk.tensor.1d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2}], [%3];" ::
            "r"(address_of(tile)),
        "l"(map), "r"(0), "r"(address_of(&arrived))
        : "memory");
  out[threadIdx.x] = tile[threadIdx.x];
}

int main() { return 0; }
