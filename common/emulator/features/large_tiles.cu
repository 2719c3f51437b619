// Cooperative groups: tiles of more than 32 threads
// Support: refused: the emulator supports tiles of at most 32 threads
#include <cooperative_groups.h>

namespace cg = cooperative_groups;

__global__ void ranks(int* out) {
  __shared__ cg::block_tile_memory<128> memory;
  const auto block = cg::this_thread_block(memory);
  const auto tile = cg::tiled_partition<64>(block);
  out[block.thread_rank()] = tile.thread_rank();
}

int main() {
  int* out;
  cudaMalloc(&out, 128 * sizeof(int));
  ranks<<<1, 128>>>(out);
  cudaDeviceSynchronize();
  cudaFree(out);
}
