// Cooperative groups: tiles of 1 to 32 threads and coalesced groups, with shuffles, votes, reduce and scans
// Support: yes
#include <cooperative_groups.h>
#include <cooperative_groups/reduce.h>
#include <cooperative_groups/scan.h>

#include <cstdio>

namespace cg = cooperative_groups;

// The sum, the prefix sum and the votes of each tile. The threads of a tile wait only for each other.
template <unsigned kSize>
__global__ void tiles(int* out) {
  const cg::thread_block block = cg::this_thread_block();
  const cg::thread_block_tile<kSize> tile = cg::tiled_partition<kSize>(block);
  const int value = block.thread_rank() + 1;
  int* own = out + 8 * block.thread_rank();
  own[0] = cg::reduce(tile, value, cg::plus<int>());
  own[1] = cg::inclusive_scan(tile, value);
  own[2] = cg::exclusive_scan(tile, value, cg::plus<int>());
  own[3] = tile.shfl(value, 0);
  own[4] = tile.ballot(value % 2);
  own[5] = tile.meta_group_rank() + 100 * tile.meta_group_size();
  own[6] = cg::reduce(tile, value, [](int a, int b) { return a > b ? a : b; });
  own[7] = tile.shfl_xor(value, kSize / 2) + tile.any(value == 1) + 2 * tile.all(value > 0);
}

// The odd lanes form a group of their own. Lanes with the same label form others.
__global__ void coalesced(int* out) {
  const auto warp = cg::tiled_partition<32>(cg::this_thread_block());
  const int rank = warp.thread_rank();
  int result = 0;
  if (rank % 2) {
    const cg::coalesced_group odd = cg::coalesced_threads();
    result = cg::reduce(odd, rank, cg::plus<int>()) + 1000 * odd.size() + 100000 * odd.thread_rank();
  }
  warp.sync();
  const auto same = cg::labeled_partition(warp, rank % 3);
  const auto half = cg::binary_partition(warp, rank < 10);
  out[rank] = result + 10000000 * (same.thread_rank() == unsigned(rank / 3)) + 20000000 * (half.size() > 10);
}

// A float4 is shuffled as a whole. One thread of each tile does a part of the work.
__global__ void exchange(float4* out, int* calls) {
  const auto tile = cg::tiled_partition<4>(cg::tiled_partition<16>(cg::this_thread_block()));
  const float x = threadIdx.x;
  const float4 own = make_float4(x, x + 0.25f, x + 0.5f, x + 0.75f);
  out[threadIdx.x] = tile.shfl_down(own, 1);
  cg::invoke_one(tile, [&] { atomicAdd(calls, 1); });
}

int failed(const char* what, int at, double got, double expected) {
  return std::fprintf(stderr, "%s %d is %g, expected %g\n", what, at, got, expected), 1;
}

template <unsigned kSize>
int check_tiles() {
  constexpr int kThreads = 64;
  int *out, host[8 * kThreads];
  cudaMalloc(&out, sizeof(host));
  tiles<kSize><<<1, kThreads>>>(out);
  cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost);
  cudaFree(out);
  for (int t = 0; t < kThreads; t++) {
    const int size = kSize, first = t / size * size, last = first + size;
    int total = 0, before = 0;
    unsigned odd = 0;
    for (int k = first; k < last; k++) {
      total += k + 1;
      before += k < t ? k + 1 : 0;
      odd |= unsigned((k + 1) % 2) << (k - first);
    }
    const int other = size == 1 ? t : first + ((t - first) ^ (size / 2));
    const int expected[8] = {total,    before + t + 1,
                             before,   first + 1,
                             int(odd), t / size + 100 * (kThreads / size),
                             last,     other + 1 + (first == 0) + 2};
    for (int k = 0; k < 8; k++)
      if (host[8 * t + k] != expected[k])
        return failed("tile value", 8 * t + k, host[8 * t + k], expected[k]);
  }
  return 0;
}

int main() {
  if (check_tiles<1>() || check_tiles<2>() || check_tiles<4>() || check_tiles<8>() || check_tiles<16>() ||
      check_tiles<32>())
    return 1;

  int *out, numbers[32];
  cudaMalloc(&out, sizeof(numbers));
  coalesced<<<1, 32>>>(out);
  cudaMemcpy(numbers, out, sizeof(numbers), cudaMemcpyDeviceToHost);
  for (int t = 0; t < 32; t++) {
    const int expected = (t % 2 ? 256 + 16000 + 100000 * (t / 2) : 0) + 10000000 + 20000000 * (t >= 10);
    if (numbers[t] != expected) return failed("coalesced", t, numbers[t], expected);
  }

  float4 *vectors, received[32];
  cudaMalloc(&vectors, sizeof(received));
  cudaMemset(out, 0, sizeof(int));
  exchange<<<1, 32>>>(vectors, out);
  cudaMemcpy(received, vectors, sizeof(received), cudaMemcpyDeviceToHost);
  cudaMemcpy(numbers, out, sizeof(int), cudaMemcpyDeviceToHost);
  for (int t = 0; t < 32; t++) {
    const float expected = (t % 4 == 3 ? t : t + 1) + 0.75f;
    if (received[t].w != expected) return failed("shuffled", t, received[t].w, expected);
  }
  if (numbers[0] != 8) return failed("calls", 0, numbers[0], 8);
  cudaFree(vectors);
  cudaFree(out);
}
