// Shared memory: reads and writes outside a variable, or outside the bytes that the launch requested.
#include "case.h"

// ---- arrays of a fixed size

__global__ void reverse(float* out, const float* in) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];  // BUG memory: tile
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];  // BUG memory: tile
}
CASE(wrong_more_threads_than_elements) { reverse<<<1, 160>>>(unwritten<float>(160), numbers<float>(160)); }

__global__ void reverse_right(float* out, const float* in) {
  __shared__ float tile[128];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[blockDim.x - 1 - threadIdx.x];
}
CASE(right_as_many_threads_as_elements) {
  float* out = unwritten<float>(128);
  reverse_right<<<1, 128>>>(out, numbers<float>(128));
  expect_each(out, 128, [](int i) { return 127 - i; });
}

// The tile has space for one neighbour, but the stencil reads two.
__global__ void sum_of_three(float* out, const float* in) {
  __shared__ float tile[64 + 1];
  const int t = threadIdx.x;
  tile[t] = in[t];
  if (t == 0) tile[64] = in[64];
  __syncthreads();
  float sum = tile[t] + tile[t + 1];
  sum += tile[t + 2];  // BUG memory: tile
  out[t] = sum;
}
CASE(wrong_halo_too_narrow) { sum_of_three<<<1, 64>>>(unwritten<float>(64), numbers<float>(66)); }

__global__ void sum_of_three_right(float* out, const float* in) {
  __shared__ float tile[64 + 2];
  const int t = threadIdx.x;
  tile[t] = in[t];
  if (t < 2) tile[64 + t] = in[64 + t];
  __syncthreads();
  out[t] = tile[t] + tile[t + 1] + tile[t + 2];
}
CASE(right_halo) {
  float* out = unwritten<float>(64);
  sum_of_three_right<<<1, 64>>>(out, numbers<float>(66));
  expect_each(out, 64, [](int i) { return 3 * i + 3; });
}

__global__ void shift(int* out, const int* in) {
  __shared__ int before[32];
  before[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = before[int(threadIdx.x) - 1];  // BUG memory: before
}
CASE(wrong_before_the_first) { shift<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

__global__ void shift_right(int* out, const int* in) {
  __shared__ int before[33];
  if (threadIdx.x == 0) before[0] = 0;
  before[threadIdx.x + 1] = in[threadIdx.x] + 1;
  __syncthreads();
  const int* shifted = before + 1;
  out[threadIdx.x] = shifted[int(threadIdx.x) - 1];
}
CASE(right_negative_index_inside) {
  int* out = unwritten<int>(32);
  shift_right<<<1, 32>>>(out, numbers<int>(32));
  expect_each(out, 32, [](int i) { return i; });
}

// A second array follows the first. A GPU writes into it, and none of NVIDIA's tools reports that.
__global__ void count_even_and_odd(int* out, const int* values, int n) {
  __shared__ int even[8], odd[8];
  if (threadIdx.x < 8) even[threadIdx.x] = odd[threadIdx.x] = 0;
  __syncthreads();
  const int value = values[threadIdx.x];
  if (value % 2) {
    atomicAdd(&odd[value / 2], 1);
  } else {
    atomicAdd(&even[value / 2], 1);  // BUG memory: even
  }
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = even[threadIdx.x] - odd[threadIdx.x];
}
CASE(wrong_into_the_next_array) { count_even_and_odd<<<1, 17>>>(unwritten<int>(8), numbers<int>(17), 17); }

__global__ void count_even_and_odd_right(int* out, const int* values, int n) {
  __shared__ int even[8], odd[8];
  if (threadIdx.x < 8) even[threadIdx.x] = odd[threadIdx.x] = 0;
  __syncthreads();
  const int value = values[threadIdx.x];
  atomicAdd(value % 2 ? &odd[value / 2] : &even[value / 2], 1);
  __syncthreads();
  if (threadIdx.x < 8) out[threadIdx.x] = even[threadIdx.x] - odd[threadIdx.x];
}
CASE(right_two_arrays) {
  int* out = unwritten<int>(8);
  count_even_and_odd_right<<<1, 16>>>(out, numbers<int>(16), 16);
  expect_each(out, 8, [](int) { return 0; });
}

__global__ void transpose(float* out, const float* in) {
  __shared__ float tile[8][8];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * blockDim.x + threadIdx.x];  // BUG memory: tile
  __syncthreads();
  out[threadIdx.x * blockDim.y + threadIdx.y] = tile[threadIdx.x][threadIdx.y];
}
CASE(wrong_tile_of_the_wrong_shape) {
  transpose<<<1, dim3(8, 12)>>>(unwritten<float>(96), numbers<float>(96));
}

__global__ void transpose_right(float* out, const float* in) {
  __shared__ float tile[12][8 + 1];
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * blockDim.x + threadIdx.x];
  __syncthreads();
  out[threadIdx.x * blockDim.y + threadIdx.y] = tile[threadIdx.y][threadIdx.x];
}
CASE(right_padded_tile) {
  float* out = unwritten<float>(96);
  transpose_right<<<1, dim3(8, 12)>>>(out, numbers<float>(96));
  expect_each(out, 96, [](int i) { return i % 12 * 8 + i / 12; });
}

// ---- arrays whose size is given by the launch

__global__ void softmax(float* out, const float* in, int n) {
  extern __shared__ float row[];
  const int t = threadIdx.x;
  row[t] = expf(in[t]);  // BUG memory: row
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < n; i++) sum += row[i];  // BUG memory: row
  out[t] = row[t] / sum;
}
CASE(wrong_elements_for_bytes) { softmax<<<1, 64, 64>>>(unwritten<float>(64), zeros<float>(64), 64); }

__global__ void softmax_right(float* out, const float* in, int n) {
  extern __shared__ float row[];
  const int t = threadIdx.x;
  row[t] = expf(in[t]);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < n; i++) sum += row[i];
  out[t] = row[t] / sum;
}
CASE(right_dynamic_array) {
  float* out = unwritten<float>(64);
  softmax_right<<<1, 64, 64 * sizeof(float)>>>(out, zeros<float>(64), 64);
  expect_each(out, 64, [](int) { return 1. / 64; });
}

__global__ void rotate(int* out, const int* in) {
  extern __shared__ int ring[];
  ring[threadIdx.x] = in[threadIdx.x];  // BUG memory: ring
  __syncthreads();
  out[threadIdx.x] = ring[(threadIdx.x + 1) % blockDim.x];
}
CASE(wrong_forgotten_bytes) { rotate<<<1, 32>>>(unwritten<int>(32), numbers<int>(32)); }

// The sums follow the counts in one piece of memory, so the launch must request space for both.
__global__ void means(float* out, const float* in, const int* group, int n, int groups) {
  extern __shared__ int counts[];
  float* sums = reinterpret_cast<float*>(counts + groups);
  if (threadIdx.x < groups) counts[threadIdx.x] = 0;
  if (threadIdx.x < groups) sums[threadIdx.x] = 0;  // BUG memory: counts
  __syncthreads();
  atomicAdd(&counts[group[threadIdx.x]], 1);
  atomicAdd(&sums[group[threadIdx.x]], in[threadIdx.x]);  // BUG memory: counts
  __syncthreads();
  if (threadIdx.x < groups) out[threadIdx.x] = sums[threadIdx.x] / counts[threadIdx.x];
}
CASE(wrong_bytes_for_one_of_two) {
  const int* group = filled<int>(64, [](int i) { return i / 8; });
  means<<<1, 64, 8 * sizeof(int)>>>(unwritten<float>(8), numbers<float>(64), group, 64, 8);
}

__global__ void means_right(float* out, const float* in, const int* group, int n, int groups) {
  extern __shared__ int counts[];
  float* sums = reinterpret_cast<float*>(counts + groups);
  if (threadIdx.x < groups) counts[threadIdx.x] = 0, sums[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&counts[group[threadIdx.x]], 1);
  atomicAdd(&sums[group[threadIdx.x]], in[threadIdx.x]);
  __syncthreads();
  if (threadIdx.x < groups) out[threadIdx.x] = sums[threadIdx.x] / counts[threadIdx.x];
}
CASE(right_two_in_one) {
  const int* group = filled<int>(64, [](int i) { return i / 8; });
  float* out = unwritten<float>(8);
  means_right<<<1, 64, 8 * (sizeof(int) + sizeof(float))>>>(out, numbers<float>(64), group, 64, 8);
  expect_each(out, 8, [](int i) { return 8 * i + 3.5; });
}

// ---- code that looks wrong but is correct

struct Pair {
  float value;
  int index;
};
__shared__ Pair best[64];
__device__ void keep_larger(int t, int other) {
  if (best[other].value > best[t].value) best[t] = best[other];
}
__global__ void index_of_largest(int* out, const float* in) {
  const int t = threadIdx.x;
  best[t] = {in[t], t};
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) keep_larger(t, t + half);
    __syncthreads();
  }
  if (t == 0) *out = best[0].index;
}
CASE(right_structs_at_file_scope) {
  int* out = unwritten<int>(1);
  index_of_largest<<<1, 64>>>(out, filled<float>(64, [](int i) { return i * 29 % 64; }));
  expect_one(out, 11);
}

__global__ void use_much(float* out) {
  extern __shared__ double much[];
  const int last = 8 * 1024 - 1;
  much[last - threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = much[last - (threadIdx.x ^ 1)];
}
CASE(right_64_kib) {
  float* out = unwritten<float>(32);
  check(cudaFuncSetAttribute(use_much, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  use_much<<<1, 32, 64 * 1024>>>(out);
  expect_each(out, 32, [](int i) { return i ^ 1; });
}

int main(int words, char** word) { return run_cases(words, word); }
