// Races between blocks: no barrier orders them; atomics, fences and the end of a kernel do.
#include "case.h"

// ---- several blocks write to one address

__global__ void sum(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[blockIdx.x * 64 + t];
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) *total += partial[0];  // BUG races: total
}
CASE(wrong_total_without_atomics) { sum<<<4, 64>>>(zeros<float>(1), numbers<float>(256)); }

__global__ void sum_right(float* total, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  partial[t] = in[blockIdx.x * 64 + t];
  for (int half = 32; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) atomicAdd(total, partial[0]);
}
CASE(right_total_with_atomics) {
  float* total = zeros<float>(1);
  sum_right<<<4, 64>>>(total, numbers<float>(256));
  expect_one(total, 128 * 255);
}

__global__ void histogram(int* bins, const int* values) {
  bins[values[blockIdx.x * 32 + threadIdx.x] / 32 % 2 * 8 + threadIdx.x % 8]++;  // BUG races: bins
}
CASE(wrong_histogram_without_atomics) { histogram<<<4, 32>>>(zeros<int>(16), numbers<int>(128)); }

__global__ void histogram_right(int* bins, const int* values) {
  atomicAdd(&bins[values[blockIdx.x * 32 + threadIdx.x] / 32 % 2 * 8 + threadIdx.x % 8], 1);
}
CASE(right_histogram) {
  int* bins = zeros<int>(16);
  histogram_right<<<4, 32>>>(bins, numbers<int>(128));
  expect_each(bins, 16, [](int) { return 8; });
}

// Blocks of 64 threads start every 60 rows: the last rows of one block are the first rows of the next.
__global__ void index_rows(int* out, int n) {
  const int i = blockIdx.x * 60 + threadIdx.x;
  if (i < n) out[i] = 1000 * blockIdx.x + threadIdx.x;  // BUG races: out
}
CASE(wrong_blocks_overlap) { index_rows<<<4, 64>>>(unwritten<int>(240), 240); }

__global__ void index_rows_right(int* out, int n) {
  const int i = blockIdx.x * 60 + threadIdx.x;
  if (i < n && threadIdx.x < 60) out[i] = i;
}
CASE(right_blocks_side_by_side) {
  int* out = unwritten<int>(240);
  index_rows_right<<<4, 64>>>(out, 240);
  expect_each(out, 240, [](int i) { return i; });
}

// The rows of gates are three times as long as the index assumes.
__global__ void store_gates(float* gates, int state) {
  const int at = blockIdx.y * state + threadIdx.x;
  gates[at] = 3 * blockIdx.y;                  // BUG races: gates
  gates[at + state] = 3 * blockIdx.y + 1;      // BUG races: gates
  gates[at + 2 * state] = 3 * blockIdx.y + 2;  // BUG races: gates
}
CASE(wrong_rows_of_gates_overlap) { store_gates<<<dim3(1, 4), 8>>>(unwritten<float>(4 * 3 * 8), 8); }

__global__ void store_gates_right(float* gates, int state) {
  const int at = blockIdx.y * 3 * state + threadIdx.x;
  gates[at] = 3 * blockIdx.y;
  gates[at + state] = 3 * blockIdx.y + 1;
  gates[at + 2 * state] = 3 * blockIdx.y + 2;
}
CASE(right_rows_of_gates) {
  float* gates = unwritten<float>(4 * 3 * 8);
  store_gates_right<<<dim3(1, 4), 8>>>(gates, 8);
  expect_each(gates, 4 * 3 * 8, [](int i) { return i / 8; });
}

// All blocks write the same value.
__global__ void any_negative_right(int* found, const int* in) {
  if (in[blockIdx.x * 32 + threadIdx.x] < 0) *found = 1;
}
CASE(right_all_write_the_same) {
  int* found = zeros<int>(1);
  any_negative_right<<<4, 32>>>(found, filled<int>(128, [](int i) { return i % 3 - 1; }));
  expect_one(found, 1);
}

// ---- one block reads what another writes

__global__ void blur(float* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  float left = 0;
  if (i > 0 && i < n) left = x[i - 1];  // BUG races: x
  __syncthreads();
  if (i > 0 && i < n) x[i] = (left + x[i]) / 2;  // BUG races: x
}
CASE(wrong_stencil_in_place) { blur<<<3, 32>>>(numbers<float>(96), 96); }

__global__ void blur_right(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = i ? (in[i - 1] + in[i]) / 2 : in[i];
}
CASE(right_stencil_from_one_array_to_another) {
  float *a = filled<float>(96, [](int i) { return 4 * i; }), *b = unwritten<float>(96);
  blur_right<<<3, 32>>>(b, a, 96);
  blur_right<<<3, 32>>>(a, b, 96);  // the end of a kernel orders later work in the stream after it
  expect_each(a, 96, [](int i) { return i > 1 ? 4 * i - 4 : i; });
}

// The last block to arrive adds up the results of all blocks. Without a fence it may see old values.
__device__ unsigned blocks_done;
__global__ void sum_at_the_end(float* total, float* partial, const float* in) {
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];  // BUG races: partial
    if (atomicAdd(&blocks_done, 1) == gridDim.x - 1) {
      float sum = 0;
      for (int i = 0; i < gridDim.x; i++) sum += partial[i];  // BUG races: partial
      *total = sum;
    }
  }
}
CASE(wrong_last_block_without_a_fence) {
  sum_at_the_end<<<8, 32>>>(unwritten<float>(1), unwritten<float>(8), numbers<float>(8));
}

__device__ unsigned blocks_ready;
__global__ void last_block_right(float* total, float* partial, const float* in) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    partial[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    is_last = atomicInc(&blocks_ready, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  __shared__ float values[32];
  values[threadIdx.x] = threadIdx.x < gridDim.x ? partial[threadIdx.x] : 0;
  __syncthreads();
  if (threadIdx.x > 0) return;
  float sum = 0;
  for (int i = 0; i < 32; i++) sum += values[i];
  *total = sum;
}
CASE(right_last_block) {
  float *total = unwritten<float>(1), *partial = unwritten<float>(8);
  for (int round = 0; round < 2; round++) {  // the counter is zero again
    last_block_right<<<8, 32>>>(total, partial, numbers<float>(8));
    expect_one(total, 28);
  }
}

// ---- blocks that wait for each other

__device__ volatile int flag;
__global__ void hand_over(int* box, int* out) {
  if (blockIdx.x == 0) {
    box[0] = 42;  // BUG races: box
    flag = 1;
  } else {
    while (flag == 0) {
    }
    out[0] = box[0];  // BUG races: box
  }
}
CASE(wrong_flag_without_a_fence) { hand_over<<<2, 1>>>(zeros<int>(1), unwritten<int>(1)); }

__device__ volatile int flag_right;
__global__ void hand_over_right(int* box, int* out) {
  if (blockIdx.x == 0) {
    box[0] = 42;
    __threadfence();
    flag_right = 1;
  } else {
    while (flag_right == 0) {
    }
    __threadfence();
    out[0] = box[0];
  }
}
CASE(right_flag_with_fences) {
  int* out = unwritten<int>(1);
  hand_over_right<<<2, 1>>>(zeros<int>(1), out);
  expect_one(out, 42);
}

// The lock is released by a plain write, so nothing keeps the protected accesses inside the lock.
__device__ int is_locked;
__global__ void deposit(int* balance) {
  if (threadIdx.x > 0) return;
  while (atomicCAS(&is_locked, 0, 1)) {
  }
  *balance += 10;  // BUG races: balance
  atomicExch(&is_locked, 0);
}
CASE(wrong_lock_without_fences) { deposit<<<4, 32>>>(zeros<int>(1)); }

__device__ int is_locked_right;
__global__ void deposit_right(int* balance) {
  if (threadIdx.x > 0) return;
  while (atomicCAS(&is_locked_right, 0, 1)) {
  }
  __threadfence();
  *balance += 10;
  __threadfence();
  atomicExch(&is_locked_right, 0);
}
CASE(right_lock) {
  int* balance = zeros<int>(1);
  deposit_right<<<4, 32>>>(balance);
  expect_one(balance, 40);
}

// A hand-written barrier for the whole grid; all blocks must fit on the device at once.
__device__ unsigned arrived;
__device__ void wait_for_grid(unsigned round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1);
    while (atomicAdd(&arrived, 0) < round * gridDim.x) {
    }
  }
  __syncthreads();
}
__global__ void steps(float* out, float* between, const float* in) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  between[i] = in[(i + 1) % n];  // BUG races: between
  wait_for_grid(1);
  out[i] = between[(i + 1) % n];  // BUG races: between
}
CASE(wrong_grid_barrier_without_a_fence) {
  steps<<<2, 32>>>(unwritten<float>(64), unwritten<float>(64), numbers<float>(64));
}

__device__ unsigned arrived_right;
__device__ void wait_for_grid_right(unsigned round) {
  __syncthreads();
  if (threadIdx.x == 0) {
    __threadfence();
    atomicAdd(&arrived_right, 1);
    while (atomicAdd(&arrived_right, 0) < round * gridDim.x) {
    }
    __threadfence();
  }
  __syncthreads();
}
__global__ void steps_right(float* a, float* b) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
  b[i] = a[(i + 1) % n];
  wait_for_grid_right(1);
  a[i] = b[(i + 1) % n];
  wait_for_grid_right(2);
  b[i] = a[(i + 1) % n];
}
CASE(right_grid_barrier) {
  float *a = numbers<float>(64), *b = unwritten<float>(64);
  steps_right<<<2, 32>>>(a, b);
  expect_each(b, 64, [](int i) { return (i + 3) % 64; });
}

// Running sums from block to block: each block waits for the flag of the previous block.
__global__ void running_sum_right(int* sums, volatile int* is_ready, const int* in) {
  const int b = blockIdx.x;
  if (threadIdx.x > 0) return;
  int before = 0;
  if (b > 0) {
    while (!is_ready[b - 1]) {
    }
    __threadfence();
    before = sums[b - 1];
  }
  sums[b] = before + in[b];
  __threadfence();
  is_ready[b] = 1;
}
CASE(right_chained_scan) {
  int* sums = unwritten<int>(6);
  running_sum_right<<<6, 32>>>(sums, zeros<int>(6), numbers<int>(6));
  expect_each(sums, 6, [](int i) { return i * (i + 1) / 2; });
}

// A read before the atomic; `volatile` says that other threads may write in the meantime.
__global__ void largest_right(int* best, const int* in) {
  const int value = in[blockIdx.x * 32 + threadIdx.x];
  if (value > *static_cast<volatile int*>(best)) atomicMax(best, value);
}
CASE(right_volatile_look_first) {
  int* best = zeros<int>(1);
  largest_right<<<4, 32>>>(best, numbers<int>(128));
  expect_one(best, 127);
}

int main(int words, char** word) { return run_cases(words, word); }
