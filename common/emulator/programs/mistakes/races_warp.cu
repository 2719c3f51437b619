// Races in a warp: its lanes do not run in lockstep, so a lane must wait for another lane's write.
#include "case.h"

constexpr unsigned kAll = 0xffffffff;

// ---- shared memory without __syncwarp

__global__ void swap_neighbours(int* out, const int* in) {
  __shared__ int pair[32];
  pair[threadIdx.x] = in[threadIdx.x];       // BUG races: pair
  out[threadIdx.x] = pair[threadIdx.x ^ 1];  // BUG races: pair
}
CASE(wrong_exchange_without_waiting) { swap_neighbours<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void swap_neighbours_right(int* out, const int* in) {
  __shared__ int pair[32];
  pair[threadIdx.x] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = pair[threadIdx.x ^ 1];
}
CASE(right_exchange) {
  int* out = unwritten<int>(32);
  swap_neighbours_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i ^ 1; });
}

// Older books (before 2017) show this code. Today `volatile` is not enough.
__global__ void sum(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  if (t < 32) {
    volatile float* v = partial;
    for (int half = 32; half > 0; half /= 2) v[t] = v[t] + v[t + half];  // BUG races: partial
  }
  if (t == 0) *total = partial[0];
}
CASE(wrong_volatile_for_syncwarp) { sum<<<1, 64>>>(unwritten<float>(1), numbers<float>(64)); }

__global__ void sum_right(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  if (t < 32) {
    float value = partial[t] + partial[t + 32];
    for (int half = 16; half > 0; half /= 2) {
      partial[t] = value;
      __syncwarp();
      value += partial[t ^ half];
      __syncwarp();
    }
    if (t == 0) *total = value;
  }
}
CASE(right_syncwarp_twice_a_step) {
  float* total = unwritten<float>(1);
  sum_right<<<1, 64>>>(total, numbers<float>(64));
  expect_one(total, 2016);
}

// One step's reads are ordered, but the next step overwrites values that a slow lane has not read yet.
__global__ void scan(int* out, const int* in) {
  __shared__ int sums[32];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncwarp();
  for (int step = 1; step < 32; step *= 2) {
    const int left = t >= step ? sums[t - step] : 0;  // BUG races: sums
    sums[t] += left;                                  // BUG races: sums
    __syncwarp();
  }
  out[t] = sums[t];
}
CASE(wrong_one_syncwarp_for_two) { scan<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void scan_right(int* out, const int* in) {
  __shared__ int sums[32];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncwarp();
  for (int step = 1; step < 32; step *= 2) {
    const int left = t >= step ? sums[t - step] : 0;
    __syncwarp();
    sums[t] += left;
    __syncwarp();
  }
  out[t] = sums[t];
}
CASE(right_scan) {
  int* out = unwritten<int>(32);
  scan_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i * (i + 1) / 2; });
}

// ---- barriers for the wrong lanes

__global__ void pass_down(int* out, const int* in) {
  __shared__ int given[32];
  const int t = threadIdx.x;
  given[t] = in[t];  // BUG races: given
  if (t < 16) {
    __syncwarp(0x0000ffff);
    out[t] = given[t + 16];  // BUG races: given
  } else {
    out[t] = 0;
  }
}
CASE(wrong_half_of_the_warp_waits) { pass_down<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

// Each half of the warp works on its own elements.
__global__ void halves_right(int* out, const int* in) {
  __shared__ int given[32];
  const int t = threadIdx.x;
  given[t] = in[t];
  if (t < 16) {
    __syncwarp(0x0000ffff);
    out[t] = given[15 - t];
  } else {
    __syncwarp(0xffff0000);
    out[t] = given[47 - t];
  }
}
CASE(right_halves) {
  int* out = unwritten<int>(32);
  halves_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i < 16 ? 15 - i : 47 - i; });
}

// __syncwarp synchronises the lanes of one warp, but the neighbour may be in the next warp.
__global__ void difference(int* out, const int* in) {
  __shared__ int values[64];
  const int t = threadIdx.x;
  values[t] = in[t];  // BUG races: values
  __syncwarp();
  out[t] = t ? values[t] - values[t - 1] : 0;  // BUG races: values
}
CASE(wrong_syncwarp_for_a_block) { difference<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void difference_right(int* out, const int* in) {
  __shared__ int values[2][32];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  values[warp][lane] = in[threadIdx.x];
  __syncwarp();
  out[threadIdx.x] = lane ? values[warp][lane] - values[warp][lane - 1] : 0;
}
CASE(right_each_warp_its_own_row) {
  int* out = unwritten<int>(64);
  difference_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return i % 32 ? 1 : 0; });
}

// One lane writes for all lanes of the ballot. These lanes must wait for it, and they do.
__global__ void share_first_right(int* out, const int* in) {
  __shared__ int first;
  const int t = threadIdx.x, value = in[t];
  const unsigned odd = __ballot_sync(kAll, value % 2);
  if (value % 2) {
    if (t == __ffs(odd) - 1) first = value;
    __syncwarp(odd);
    out[t] = first;
  } else {
    out[t] = 0;
  }
}
CASE(right_mask_from_a_ballot) {
  int* out = unwritten<int>(32);
  share_first_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i % 2; });
}

// ---- global memory

__global__ void sort_pairs(int* x) {
  const int t = threadIdx.x;
  const int mine = x[t], other = x[t ^ 1];             // BUG races: x
  x[t] = t % 2 ? max(mine, other) : min(mine, other);  // BUG races: x
}
CASE(wrong_sorted_in_place) {
  sort_pairs<<<1, 32>>>(filled<int>(32, [](int i) { return 32 - i; }));
}

__global__ void sort_pairs_right(int* x) {
  const int t = threadIdx.x;
  const int mine = x[t], other = x[t ^ 1];
  __syncwarp();
  x[t] = t % 2 ? max(mine, other) : min(mine, other);
}
CASE(right_sorted_in_place) {
  int* x = filled<int>(32, [](int i) { return 31 - i; });
  sort_pairs_right<<<1, 32>>>(x);
  expect_each(x, 32, [](int i) { return 31 - (i ^ 1); });
}

// Only registers are used, so no lane has to wait.
__global__ void shuffled_sum_right(float* total, const float* in) {
  float value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(kAll, value, offset);
  if (threadIdx.x == 0) *total = value;
}
CASE(right_shuffles) {
  float* total = unwritten<float>(1);
  shuffled_sum_right<<<1, 32>>>(total, numbers<float>(32));
  expect_one(total, 496);
}

// Each warp computes a sum with shuffles, then the first warp adds these sums.
__global__ void two_levels_right(float* total, const float* in) {
  __shared__ float of_warp[4];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;
  float value = in[threadIdx.x];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(kAll, value, offset);
  if (lane == 0) of_warp[warp] = value;
  __syncthreads();
  if (warp > 0) return;
  value = lane < 4 ? of_warp[lane] : 0;
  for (int offset = 2; offset > 0; offset /= 2) value += __shfl_down_sync(kAll, value, offset);
  if (lane == 0) *total = value;
}
CASE(right_sums_of_warps) {
  float* total = unwritten<float>(1);
  two_levels_right<<<1, 128>>>(total, numbers<float>(128));
  expect_one(total, 64 * 127);
}

int main(int words, char** word) { return run_cases(words, word); }
