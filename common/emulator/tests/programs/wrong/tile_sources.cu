#include <cooperative_groups.h>
namespace cg = cooperative_groups;
__global__ void take(int* x) {
  const auto tile = cg::tiled_partition<64>(cg::this_thread_block());
  x[threadIdx.x] = tile.shfl(int(threadIdx.x), tile.thread_rank() / 32);
}
int main() {
  int* x;
  cudaMalloc(&x, 64 * sizeof(int));
  take<<<1, 64>>>(x);
  cudaDeviceSynchronize();
  cudaFree(x);
}
