#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void wait() {
  const auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  if (tile.thread_rank() < 32) tile.sync();
}
int main() {
  wait<<<1, 128>>>();
  cudaDeviceSynchronize();
}
