// Reductions of a warp: __reduce_add_sync, min, max, and, or, xor
// Support: yes
#include <cstdio>

// Each half of the warp reduces its own values, the second one with a mask that is not complete.
__global__ void reduce(int* of_int, unsigned* of_unsigned) {
  const unsigned lane = threadIdx.x, mask = lane < 16 ? 0xffffu : 0x0fff0000u;
  if (lane >= 28) return;
  const int value = int(lane) - 20;
  int* own = of_int + 3 * lane;
  own[0] = __reduce_add_sync(mask, value);
  own[1] = __reduce_min_sync(mask, value);
  own[2] = __reduce_max_sync(mask, value);
  unsigned* bits = of_unsigned + 6 * lane;
  bits[0] = __reduce_add_sync(mask, 0x80000000u + lane);
  bits[1] = __reduce_min_sync(mask, lane - 20u);
  bits[2] = __reduce_max_sync(mask, lane - 20u);
  bits[3] = __reduce_and_sync(mask, ~(1u << lane));
  bits[4] = __reduce_or_sync(mask, 1u << lane);
  bits[5] = __reduce_xor_sync(mask, 3u << lane);
}

int main() {
  constexpr int kLanes = 28;
  int* of_int;
  unsigned* of_unsigned;
  cudaMallocManaged(&of_int, kLanes * 3 * sizeof(int));
  cudaMallocManaged(&of_unsigned, kLanes * 6 * sizeof(unsigned));
  reduce<<<1, 32>>>(of_int, of_unsigned);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  constexpr int kOfInt[2][3] = {{-200, -20, -5}, {18, -4, 7}};
  constexpr unsigned kOfUnsigned[2][6] = {
      {120, 0u - 20u, 0u - 5u, 0xffff0000, 0x0000ffff, 0x00010001},
      {258, 0, 0u - 1u, 0xf000ffff, 0x0fff0000, 0x10010000},
  };
  int wrong = 0;
  for (int lane = 0; lane < kLanes; lane++) {
    for (int k = 0; k < 3; k++) wrong += of_int[3 * lane + k] != kOfInt[lane / 16][k];
    for (int k = 0; k < 6; k++) wrong += of_unsigned[6 * lane + k] != kOfUnsigned[lane / 16][k];
  }
  if (wrong) std::printf("%d wrong\n", wrong);
  cudaFree(of_int);
  cudaFree(of_unsigned);
  return wrong;
}
