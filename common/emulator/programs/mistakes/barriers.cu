// Barriers: not all threads of a block reach the same __syncthreads.
#include "case.h"

// ---- threads that wait at different barriers

__global__ void two_branches(int* out, const int* in) {
  __shared__ int values[64];
  const int t = threadIdx.x;
  if (t < 40) {
    values[t] = in[t];
    __syncthreads();  // BUG barriers
  } else {
    values[t] = -in[t];
    __syncthreads();  // BUG barriers
  }
  out[t] = values[63 - t];
}
CASE(wrong_a_barrier_in_each_branch) { two_branches<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void two_branches_right(int* out, const int* in) {
  __shared__ int values[64];
  const int t = threadIdx.x;
  if (t < 40)
    values[t] = in[t];
  else
    values[t] = -in[t];
  __syncthreads();
  out[t] = values[63 - t];
}
CASE(right_one_barrier_behind_the_branches) {
  int* out = unwritten<int>(64);
  two_branches_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 63 - i < 40 ? 63 - i : i - 63; });
}

// A tree reduction with its barrier inside the `if` by mistake: the other threads wait at the next barrier.
__global__ void sum(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  if (t < 32) {
    partial[t] += partial[t + 32];
    __syncthreads();  // BUG barriers
  }
  if (t < 16) partial[t] += partial[t + 16];
  __syncthreads();  // BUG barriers
  if (t == 0) *total = partial[0];
}
CASE(wrong_barrier_inside_the_if) { sum<<<1, 64>>>(unwritten<float>(1), numbers<float>(64)); }

__global__ void sum_right(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) *total = partial[0];
}
CASE(right_barrier_behind_the_if) {
  float* total = unwritten<float>(1);
  sum_right<<<1, 64>>>(total, numbers<float>(64));
  expect_one(total, 2016);
}

// The rows have different lengths, so some threads leave the loop while others wait inside it.
__global__ void row_sums(float* sums, const float* in, const int* lengths) {
  __shared__ float weight;
  float total = 0;
  for (int i = 0; i < lengths[threadIdx.x]; i++) {
    if (threadIdx.x == 0) weight = in[i];
    __syncthreads();  // BUG barriers
    total += weight * in[i];
    __syncthreads();
  }
  __syncthreads();  // BUG barriers
  sums[threadIdx.x] = total;
}
CASE(wrong_loops_of_different_length) {
  const int* lengths = filled<int>(32, [](int i) { return i < 20 ? 3 : 2; });
  row_sums<<<1, 32>>>(unwritten<float>(32), numbers<float>(8), lengths);
}

__global__ void row_sums_right(float* sums, const float* in, const int* lengths, int longest) {
  __shared__ float weight;
  float total = 0;
  for (int i = 0; i < longest; i++) {
    if (threadIdx.x == 0) weight = in[i];
    __syncthreads();
    if (i < lengths[threadIdx.x]) total += weight * in[i];
    __syncthreads();
  }
  sums[threadIdx.x] = total;
}
CASE(right_loops_of_one_length) {
  float* sums = unwritten<float>(32);
  const int* lengths = filled<int>(32, [](int i) { return i < 20 ? 3 : 2; });
  row_sums_right<<<1, 32>>>(sums, numbers<float>(8), lengths, 3);
  expect_each(sums, 32, [](int i) { return i < 20 ? 5 : 1; });
}

// ---- votes

// Because of `&&`, only threads for which the left side is true take part in the vote.
__global__ void any_large(int* out, const int* in) {
  const int t = threadIdx.x;
  int found = t < 48;
  found = found && __syncthreads_or(in[t] > 60);  // BUG barriers
  out[t] = found;
  __syncthreads();  // BUG barriers
  if (t == 0) out[0] += out[63];
}
CASE(wrong_vote_behind_and) { any_large<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void any_large_right(int* out, const int* in) {
  const int t = threadIdx.x;
  const int any = __syncthreads_or(in[t] > 60);
  out[t] = any && t < 48;
}
CASE(right_vote_of_all) {
  int* out = unwritten<int>(64);
  any_large_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return i < 48; });
}

__device__ int count_even(int value) { return __syncthreads_count(value % 2 == 0); }  // BUG barriers
__device__ int count_large(int value) { return __syncthreads_count(value > 31); }     // BUG barriers
__global__ void count(int* out, const int* in) {
  const int t = threadIdx.x;
  out[t] = t / 32 ? count_even(in[t]) : count_large(in[t]);
}
CASE(wrong_each_warp_its_own_vote) { count<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

// ---- branches that all threads of a block take together

__global__ void by_block_right(int* out, const int* in) {
  __shared__ int values[32];
  if (blockIdx.x % 2) {
    values[threadIdx.x] = in[threadIdx.x];
    __syncthreads();
    out[blockIdx.x * 32 + threadIdx.x] = values[31 - threadIdx.x];
  } else {
    out[blockIdx.x * 32 + threadIdx.x] = 0;
  }
}
CASE(right_branch_of_whole_blocks) {
  int* out = unwritten<int>(128);
  by_block_right<<<4, 32>>>(out, numbers<int>(32));
  expect_each(out, 128, [](int i) { return i / 32 % 2 ? 31 - i % 32 : 0; });
}

// All threads learn from a vote whether to continue.
__global__ void halve_right(int* out, const int* in) {
  int value = in[threadIdx.x], steps = 0;
  while (__syncthreads_or(value > 0)) {
    value /= 2;
    steps++;
  }
  out[threadIdx.x] = steps;
}
CASE(right_loop_until_a_vote) {
  int* out = unwritten<int>(64);
  halve_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int) { return 6; });
}

// Threads past the end have nothing to do, but they still reach the barrier.
__global__ void shift_right(int* out, const int* in, int n) {
  __shared__ int values[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i < n) values[t] = in[i];
  __syncthreads();
  if (i < n) out[i] = t ? values[t - 1] : 0;
}
CASE(right_tail_stays) {
  int* out = unwritten<int>(100);
  shift_right<<<2, 64>>>(out, numbers<int>(100), 100);
  expect_each(out, 100, [](int i) { return i % 64 ? i - 1 : 0; });
}

// No thread waits after the first threads have left.
__global__ void leave_after_the_last_barrier_right(int* out, const int* in, int n) {
  __shared__ int values[64];
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x >= n) return;
  out[threadIdx.x] = values[63 - threadIdx.x];
}
CASE(right_return_after_the_last_barrier) {
  int* out = unwritten<int>(50);
  leave_after_the_last_barrier_right<<<1, 64>>>(out, numbers<int>(64), 50);
  expect_each(out, 50, [](int i) { return 63 - i; });
}

// ---- threads that have returned: GPUs allow it, but the author may not have intended it

__global__ void leave_early(int* out, const int* in, int n) {
  __shared__ int values[64];
  const int t = threadIdx.x;
  if (t >= n) return;
  values[t] = in[t];
  __syncthreads();  // WARNING barriers
  out[t] = values[n - 1 - t];
}
CASE(warned_return_before_a_barrier) { leave_early<<<1, 64>>>(unwritten<int>(50), numbers<int>(50), 50); }

__global__ void only_the_first_half(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  if (t < 32) {
    partial[t] += partial[t + 32];
    __syncthreads();  // WARNING barriers
    if (t == 0) *total = partial[0] + partial[1];
  }
}
CASE(warned_others_reach_the_end) { only_the_first_half<<<1, 64>>>(unwritten<float>(1), numbers<float>(64)); }

__global__ void stop_when_found(int* out, const int* in) {
  for (int k = 0; k < 3; k++) {
    if (in[threadIdx.x] == k) {
      out[k] = int(threadIdx.x);
      return;
    }
    __syncthreads();  // WARNING barriers
  }
}
CASE(warned_return_from_a_loop) { stop_when_found<<<1, 32>>>(unwritten<int>(3), numbers<int>(32)); }

int main(int words, char** word) { return run_cases(words, word); }
