// Warp masks: exactly the lanes in the mask of a shuffle, a vote or a __syncwarp must call it.
#include "case.h"

constexpr unsigned kAll = 0xffffffff;

// ---- lanes that never arrive

// Sixteen numbers, but a mask of 32 lanes. The other lanes have returned, and their values are not used.
__global__ void sum(float* total, const float* in) {
  const int lane = threadIdx.x;
  float value = in[lane];
  if (lane < 16) {
    for (int offset = 8; offset > 0; offset /= 2)
      value += __shfl_down_sync(kAll, value, offset);  // WARNING barriers
    if (lane == 0) *total = value;
  }
}
CASE(warned_full_mask_in_a_branch) { sum<<<1, 32>>>(unwritten<float>(1), numbers<float>(32)); }

// With one step too many, the sum reads values of lanes that have returned.
__global__ void sum_of_all(float* total, const float* in) {
  const int lane = threadIdx.x;
  float value = in[lane];
  if (lane >= 16) return;
  for (int offset = 16; offset > 0; offset /= 2)
    value += __shfl_down_sync(kAll, value, offset);  // BUG barriers
  if (lane == 0) *total = value;
}
CASE(wrong_lanes_that_returned) { sum_of_all<<<1, 32>>>(unwritten<float>(1), numbers<float>(32)); }

// The last lane stores the value of a lane that has returned.
__global__ void differences(float* out, const float* in) {
  const int lane = threadIdx.x;
  if (lane >= 16) return;
  const float next = __shfl_down_sync(kAll, in[lane], 1);  // BUG barriers
  out[lane] = next - in[lane];
}
CASE(wrong_value_of_a_returned_lane_is_stored) {
  differences<<<1, 32>>>(unwritten<float>(16), numbers<float>(32));
}

__global__ void differences_right(float* out, const float* in) {
  const int lane = threadIdx.x;
  if (lane >= 16) return;
  const float next = __shfl_down_sync(0x0000ffff, in[lane], 1);
  out[lane] = lane < 15 ? next - in[lane] : 0;
}
CASE(right_value_of_a_returned_lane_is_not_stored) {
  float* out = unwritten<float>(16);
  differences_right<<<1, 32>>>(out, numbers<float>(32));
  expect_each(out, 16, [](int i) { return i < 15; });
}

// Each lane adds its partial sum to the total, not only the first lane, which has the whole sum.
__global__ void add_to_total(int* total, const int* in) {
  int value = in[threadIdx.x];
  if (threadIdx.x >= 16) return;
  for (int offset = 8; offset > 0; offset /= 2)
    value += __shfl_down_sync(0x0000ffff, value, offset);  // BUG barriers
  atomicAdd(total, value);
}
CASE(wrong_sums_of_all_lanes_are_added) { add_to_total<<<1, 32>>>(zeros<int>(1), numbers<int>(32)); }

__global__ void add_to_total_right(int* total, const int* in) {
  int value = in[threadIdx.x];
  if (threadIdx.x >= 16) return;
  for (int offset = 8; offset > 0; offset /= 2) value += __shfl_down_sync(0x0000ffff, value, offset);
  if (threadIdx.x == 0) atomicAdd(total, value);
}
CASE(right_sum_of_the_first_lane_is_added) {
  int* total = zeros<int>(1);
  add_to_total_right<<<1, 32>>>(total, numbers<int>(32));
  expect_one(total, 120);
}

__global__ void sum_right(float* total, const float* in) {
  const int lane = threadIdx.x;
  float value = in[lane];
  if (lane < 16) {
    for (int offset = 8; offset > 0; offset /= 2) value += __shfl_down_sync(0x0000ffff, value, offset);
    if (lane == 0) *total = value;
  }
}
CASE(right_mask_of_the_branch) {
  float* total = unwritten<float>(1);
  sum_right<<<1, 32>>>(total, numbers<float>(32));
  expect_one(total, 120);
}

// Each branch has a shuffle of all lanes: each half waits for the other half, at another call.
__global__ void minimum_and_maximum(int* out, const int* in) {
  int value = in[threadIdx.x];
  if (threadIdx.x % 2)
    value = max(value, __shfl_xor_sync(kAll, value, 2));  // BUG barriers
  else
    value = min(value, __shfl_xor_sync(kAll, value, 2));  // BUG barriers
  out[threadIdx.x] = value;
}
CASE(wrong_a_shuffle_in_each_branch) { minimum_and_maximum<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void minimum_and_maximum_right(int* out, const int* in) {
  const int value = in[threadIdx.x], other = __shfl_xor_sync(kAll, value, 2);
  out[threadIdx.x] = threadIdx.x % 2 ? max(value, other) : min(value, other);
}
CASE(right_shuffle_before_the_branches) {
  int* out = unwritten<int>(32);
  minimum_and_maximum_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i % 2 ? i | 2 : i & ~2; });
}

// The lanes of the tail have returned but are still in the mask.
__global__ void count_positive(int* counts, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const unsigned positive = __ballot_sync(kAll, in[i] > 0);  // WARNING barriers
  if (threadIdx.x % 32 == 0) counts[i / 32] = __popc(positive);
}
CASE(warned_full_mask_after_a_return) { count_positive<<<1, 64>>>(unwritten<int>(2), numbers<int>(50), 50); }

__global__ void count_positive_right(int* counts, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned in_range = __ballot_sync(kAll, i < n);
  if (i >= n) return;
  const unsigned positive = __ballot_sync(in_range, in[i] > 0);
  if (threadIdx.x % 32 == 0) counts[i / 32] = __popc(positive);
}
CASE(right_mask_from_a_ballot) {
  int* counts = unwritten<int>(2);
  count_positive_right<<<1, 64>>>(counts, numbers<int>(50), 50);
  expect_each(counts, 2, [](int i) { return i ? 18 : 31; });
}

__global__ void count_all_positive_right(int* counts, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  const unsigned positive = __ballot_sync(kAll, i < n && in[i] > 0);
  if (i < n && threadIdx.x % 32 == 0) counts[i / 32] = __popc(positive);
}
CASE(right_full_mask_without_a_return) {
  int* counts = unwritten<int>(2);
  count_all_positive_right<<<1, 64>>>(counts, numbers<int>(50), 50);
  expect_each(counts, 2, [](int i) { return i ? 18 : 31; });
}

// In blocks of 48 threads, the second warp has sixteen lanes.
__global__ void maximum(int* out, const int* in) {
  int value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2)
    value = max(value, __shfl_xor_sync(kAll, value, offset));  // BUG barriers
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = value;
}
CASE(wrong_full_mask_in_half_a_warp) { maximum<<<1, 48>>>(unwritten<int>(2), numbers<int>(48)); }

__global__ void maximum_right(int* out, const int* in) {
  const int lanes = min(32, int(blockDim.x) - int(threadIdx.x) / 32 * 32);
  const unsigned mask = lanes == 32 ? kAll : (1u << lanes) - 1;
  int value = in[threadIdx.x];
  for (int offset = lanes / 2; offset > 0; offset /= 2)
    value = max(value, __shfl_xor_sync(mask, value, offset));
  if (threadIdx.x % 32 == 0) out[threadIdx.x / 32] = value;
}
CASE(right_mask_of_half_a_warp) {
  int* out = unwritten<int>(2);
  maximum_right<<<1, 48>>>(out, numbers<int>(48));
  expect_each(out, 2, [](int i) { return i ? 47 : 31; });
}

// The lanes that left the loop wait at a vote, and the lanes in the loop wait for them.
__global__ void longest_run(int* out, const int* counts) {
  int steps = 0;
  for (int value = counts[threadIdx.x]; value > 0; value--) {
    __syncwarp();  // BUG barriers
    steps++;
  }
  out[threadIdx.x] = __any_sync(kAll, steps > 30) ? steps : 0;  // BUG barriers
}
CASE(wrong_syncwarp_in_a_loop) { longest_run<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void longest_run_right(int* out, const int* counts) {
  int steps = 0;
  for (int value = counts[threadIdx.x]; __any_sync(kAll, value > 0); value--) {
    __syncwarp();
    steps += value > 0;
  }
  out[threadIdx.x] = steps;
}
CASE(right_loop_until_a_vote) {
  int* out = unwritten<int>(32);
  longest_run_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i; });
}

// ---- lanes that do not exist, and whose values are not read

__global__ void reverse_right(int* out, const int* in) {
  __shared__ int values[16];
  values[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = values[15 - threadIdx.x];
}
CASE(right_default_mask_in_a_small_block) {
  int* out = unwritten<int>(16);
  reverse_right<<<1, 16>>>(out, numbers<int>(16));
  expect_each(out, 16, [](int i) { return 15 - i; });
}

__global__ void add_first_right(int* out, const int* in) {
  const int first = __shfl_sync(kAll, in[threadIdx.x], 0);
  out[threadIdx.x] = first + __popc(__ballot_sync(kAll, in[threadIdx.x] % 2));
}
CASE(right_full_mask_in_a_small_block) {
  int* out = unwritten<int>(16);
  add_first_right<<<1, 16>>>(out, numbers<int>(16));
  expect_each(out, 16, [](int) { return 8; });
}

// ---- lanes that are not in the mask

__global__ void broadcast(int* out, const int* in) {
  out[threadIdx.x] = __shfl_sync(0x0000ffff, in[threadIdx.x], 0);  // BUG barriers
}
CASE(wrong_lane_not_in_its_mask) { broadcast<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

// Each half of the warp has its own mask, but the two masks are exchanged.
__global__ void sum_of_halves(int* out, const int* in) {
  const unsigned mask = threadIdx.x < 16 ? 0xffff0000 : 0x0000ffff;
  int value = in[threadIdx.x];
  for (int offset = 8; offset > 0; offset /= 2)
    value += __shfl_xor_sync(mask, value, offset);  // BUG barriers
  out[threadIdx.x] = value;
}
CASE(wrong_mask_of_the_other_half) { sum_of_halves<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void sum_of_halves_right(int* out, const int* in) {
  const unsigned mask = threadIdx.x < 16 ? 0x0000ffff : 0xffff0000;
  int value = in[threadIdx.x];
  for (int offset = 8; offset > 0; offset /= 2) value += __shfl_xor_sync(mask, value, offset, 16);
  out[threadIdx.x] = value;
}
CASE(right_masks_of_halves) {
  int* out = unwritten<int>(32);
  sum_of_halves_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i < 16 ? 120 : 376; });
}

// The source is lane 0, which is not in the mask of the odd lanes.
__global__ void from_the_first(int* out, const int* in) {
  const int lane = threadIdx.x;
  const unsigned odd = __ballot_sync(kAll, lane % 2);
  if (lane % 2) out[lane] = __shfl_sync(odd, in[lane], 0);  // BUG barriers
}
CASE(wrong_source_not_in_the_mask) { from_the_first<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void from_the_first_odd_right(int* out, const int* in) {
  const int lane = threadIdx.x;
  const unsigned odd = __ballot_sync(kAll, lane % 2);
  out[lane] = 0;
  if (lane % 2) out[lane] = __shfl_sync(odd, in[lane], __ffs(odd) - 1);
}
CASE(right_source_in_the_mask) {
  int* out = unwritten<int>(32);
  from_the_first_odd_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i % 2; });
}

// Only whole warps return, so the remaining warps are complete.
__global__ void first_warps_right(int* out, const int* in, int n) {
  if (threadIdx.x >= n) return;
  int value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(kAll, value, offset);
  out[threadIdx.x] = value;
}
CASE(right_whole_warps_return) {
  int* out = unwritten<int>(64);
  first_warps_right<<<1, 128>>>(out, numbers<int>(64), 64);
  expect_each(out, 64, [](int i) { return i < 32 ? 496 : 1520; });
}

// Lanes with the same key find each other.
__global__ void sum_by_key_right(int* sums, const int* keys, const int* in) {
  const unsigned same = __match_any_sync(kAll, keys[threadIdx.x]);
  const int first = __ffs(same) - 1;
  int sum = 0;
  for (unsigned rest = same; rest; rest &= rest - 1)
    sum += __shfl_sync(same, in[threadIdx.x], __ffs(rest) - 1);
  if (threadIdx.x == first) sums[keys[threadIdx.x]] = sum;
}
CASE(right_lanes_of_one_key) {
  int* sums = unwritten<int>(4);
  sum_by_key_right<<<1, 32>>>(sums, filled<int>(32, [](int i) { return i % 4; }), numbers<int>(32));
  expect_each(sums, 4, [](int i) { return 8 * i + 112; });
}

int main(int words, char** word) { return run_cases(words, word); }
