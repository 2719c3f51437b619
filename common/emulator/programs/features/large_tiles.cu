// Cooperative groups: tiles of 64 to 512 threads, with shfl, votes, reduce and scans
// Support: yes
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;

constexpr unsigned kThreads = 512;

// Tiles wait only for themselves: each one has its own number of rounds.
template <unsigned kSize>
__global__ void tiles(int* out) {
  __shared__ cg::block_tile_memory<kThreads> memory;
  __shared__ int written[kThreads];
  const cg::thread_block block = cg::this_thread_block(memory);
  const cg::thread_block_tile<kSize> tile = cg::tiled_partition<kSize>(block);
  const unsigned own = block.thread_rank();
  const int value = int(own) + 1;
  int* row = out + 6 * own;
  row[0] = cg::reduce(tile, value, cg::plus<int>());
  row[1] = cg::inclusive_scan(tile, value);
  row[2] = cg::exclusive_scan(tile, value, cg::plus<int>());
  row[3] = tile.shfl(value, kSize - 1);
  row[4] = tile.any(value == 1) + 2 * tile.all(value > 1);
  int sum = 0;
  for (unsigned round = 0; round <= tile.meta_group_rank(); round++) {
    written[own] = value * int(round + 1);
    tile.sync();
    sum += written[own ^ kSize / 2];
    tile.sync();
  }
  row[5] = sum + 1000000 * int(cg::tiled_partition<kSize / 2>(tile).meta_group_rank());
}

template <unsigned kSize>
int count_wrong() {
  int* out;
  cudaMallocManaged(&out, kThreads * 6 * sizeof(int));
  tiles<kSize><<<1, kThreads>>>(out);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < int(kThreads); i++) {
    const int size = kSize, tile = i / size, first = tile * size + 1, last = first + size - 1;
    const int before = (first + i) * (i + 1 - first) / 2;  // the sum of the values before its own
    const int expected[6] = {
        (first + last) * size / 2,
        before + i + 1,
        before,
        last,
        tile == 0 ? 1 : 2,
        ((i ^ size / 2) + 1) * (tile + 1) * (tile + 2) / 2 + 1000000 * (i % size / (size / 2))};
    for (int k = 0; k < 6; k++) wrong += out[6 * i + k] != expected[k];
  }
  cudaFree(out);
  return wrong;
}

int main() {
  const int wrong = count_wrong<64>() + count_wrong<128>() + count_wrong<256>() + count_wrong<512>();
  if (wrong) std::printf("%d wrong\n", wrong);
  return wrong;
}
