// Races in a block: no barrier between a write and an access by another thread.
#include "case.h"

// ---- a missing barrier

__global__ void reverse(int* out, const int* in) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];        // BUG races: tile
  out[threadIdx.x] = tile[63 - threadIdx.x];  // BUG races: tile
}
CASE(wrong_no_barrier_after_the_load) { reverse<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

__global__ void reverse_right(int* out, const int* in) {
  __shared__ int tile[64];
  tile[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = tile[63 - threadIdx.x];
}
CASE(right_barrier_after_the_load) {
  int* out = unwritten<int>(64);
  reverse_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return 63 - i; });
}

__global__ void sum(float* total, const float* in) {
  __shared__ float partial[128];
  const int t = threadIdx.x;
  partial[t] = in[t];
  __syncthreads();
  for (int half = 64; half > 0; half /= 2)
    if (t < half) partial[t] += partial[t + half];  // BUG races: partial
  if (t == 0) *total = partial[0];
}
CASE(wrong_no_barrier_in_the_loop) { sum<<<1, 128>>>(unwritten<float>(1), numbers<float>(128)); }

__global__ void sum_right(float* total, const float* in) {
  __shared__ float partial[128];
  const int t = threadIdx.x;
  partial[t] = in[t];
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) partial[t] += partial[t + half];
  }
  if (t == 0) *total = partial[0];
}
CASE(right_barrier_in_the_loop) {  // the sum is read by the thread that wrote it
  float* total = unwritten<float>(1);
  sum_right<<<1, 128>>>(total, numbers<float>(128));
  expect_one(total, 64 * 127);
}

__device__ float block_max(float* partial, float value) {
  const int t = threadIdx.x;
  partial[t] = value;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) partial[t] = fmaxf(partial[t], partial[t + half]);
    __syncthreads();
  }
  return partial[0];  // BUG races: partial
}
__global__ void softmax(float* out, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  const float largest = block_max(partial, in[t]);
  partial[t] = expf(in[t] - largest);  // BUG races: partial
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 64; i++) sum += partial[i];
  out[t] = partial[t] / sum;
}
CASE(wrong_array_used_again_too_early) { softmax<<<1, 64>>>(unwritten<float>(64), zeros<float>(64)); }

__device__ float block_max_right(float* partial, float value) {
  const int t = threadIdx.x;
  partial[t] = value;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) partial[t] = fmaxf(partial[t], partial[t + half]);
    __syncthreads();
  }
  const float largest = partial[0];
  __syncthreads();
  return largest;
}
__global__ void softmax_right(float* out, const float* in) {
  __shared__ float partial[64];
  const int t = threadIdx.x;
  const float largest = block_max_right(partial, in[t]);
  partial[t] = expf(in[t] - largest);
  __syncthreads();
  float sum = 0;
  for (int i = 0; i < 64; i++) sum += partial[i];
  out[t] = partial[t] / sum;
}
CASE(right_array_used_again) {
  float* out = unwritten<float>(64);
  softmax_right<<<1, 64>>>(out, zeros<float>(64));
  expect_each(out, 64, [](int) { return 1. / 64; });
}

// Tiles of 16 x 16 in matrices of 32 x 32: the second barrier keeps the tiles until all have read them.
__global__ void multiply(float* c, const float* a, const float* b) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k = 0; k < 32; k += 16) {
    tile_a[y][x] = a[row * 32 + k + x];       // BUG races: tile_a
    tile_b[y][x] = b[(k + y) * 32 + column];  // BUG races: tile_b
    __syncthreads();
    for (int i = 0; i < 16; i++) {
      const float left = tile_a[y][i];  // BUG races: tile_a
      sum += left * tile_b[i][x];       // BUG races: tile_b
    }
  }
  c[row * 32 + column] = sum;
}
CASE(wrong_tile_overwritten) {
  multiply<<<dim3(2, 2), dim3(16, 16)>>>(unwritten<float>(1024), zeros<float>(1024), zeros<float>(1024));
}

__global__ void multiply_right(float* c, const float* a, const float* b) {
  __shared__ float tile_a[16][16], tile_b[16][16];
  const int x = threadIdx.x, y = threadIdx.y, column = blockIdx.x * 16 + x, row = blockIdx.y * 16 + y;
  float sum = 0;
  for (int k = 0; k < 32; k += 16) {
    tile_a[y][x] = a[row * 32 + k + x];
    tile_b[y][x] = b[(k + y) * 32 + column];
    __syncthreads();
    for (int i = 0; i < 16; i++) sum += tile_a[y][i] * tile_b[i][x];
    __syncthreads();
  }
  c[row * 32 + column] = sum;
}
CASE(right_tiles) {
  float* c = unwritten<float>(1024);
  const auto ones = [](int) { return 1; };
  multiply_right<<<dim3(2, 2), dim3(16, 16)>>>(c, filled<float>(1024, ones), filled<float>(1024, ones));
  expect_each(c, 1024, [](int) { return 32; });
}

// ---- in place

__global__ void scan(int* out, const int* in) {
  __shared__ int sums[64];
  const int t = threadIdx.x;
  sums[t] = in[t];
  __syncthreads();
  for (int step = 1; step < 64; step *= 2) {
    if (t >= step) sums[t] += sums[t - step];  // BUG races: sums
    __syncthreads();
  }
  out[t] = sums[t];
}
CASE(wrong_scan_in_place) { scan<<<1, 64>>>(unwritten<int>(64), numbers<int>(64)); }

// Two rows are used in turn: no thread writes the row that the step reads.
__global__ void scan_right(int* out, const int* in) {
  __shared__ int sums[2][64];
  const int t = threadIdx.x;
  int from = 0;
  sums[0][t] = in[t];
  __syncthreads();
  for (int step = 1; step < 64; step *= 2, from = 1 - from) {
    sums[1 - from][t] = sums[from][t] + (t >= step ? sums[from][t - step] : 0);
    __syncthreads();
  }
  out[t] = sums[from][t];
}
CASE(right_scan_with_two_rows) {
  int* out = unwritten<int>(64);
  scan_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 64, [](int i) { return i * (i + 1) / 2; });
}

__global__ void blur(float* x, int n) {
  const int i = threadIdx.x;
  if (i > 0 && i < n) x[i] = (x[i - 1] + x[i]) / 2;  // BUG races: x
}
CASE(wrong_stencil_in_place) { blur<<<1, 96>>>(numbers<float>(96), 96); }

__global__ void blur_right(float* x, int n) {
  const int i = threadIdx.x;
  float left = 0;
  if (i > 0 && i < n) left = x[i - 1];
  __syncthreads();
  if (i > 0 && i < n) x[i] = (left + x[i]) / 2;
}
CASE(right_stencil_in_place) {  // in global memory; a barrier orders those accesses, too
  float* x = filled<float>(96, [](int i) { return 2 * i; });
  blur_right<<<1, 96>>>(x, 96);
  expect_each(x, 96, [](int i) { return i ? 2 * i - 1 : 0; });
}

// ---- several threads write to one address

__global__ void histogram(int* bins, const int* values) {
  __shared__ int count[8];
  if (threadIdx.x < 8) count[threadIdx.x] = 0;
  __syncthreads();
  count[values[threadIdx.x] % 8]++;  // BUG races: count
  __syncthreads();
  if (threadIdx.x < 8) bins[threadIdx.x] = count[threadIdx.x];
}
CASE(wrong_histogram_without_atomics) { histogram<<<1, 128>>>(unwritten<int>(8), numbers<int>(128)); }

__global__ void histogram_right(int* bins, const int* values) {
  __shared__ int count[8];
  if (threadIdx.x < 8) count[threadIdx.x] = 0;
  __syncthreads();
  atomicAdd(&count[values[threadIdx.x] % 8], 1);
  __syncthreads();
  if (threadIdx.x < 8) bins[threadIdx.x] = count[threadIdx.x];
}
CASE(right_histogram) {
  int* bins = unwritten<int>(8);
  histogram_right<<<1, 128>>>(bins, numbers<int>(128));
  expect_each(bins, 8, [](int) { return 16; });
}

__global__ void find(int* found, const int* values, int wanted) {
  __shared__ int where;
  if (threadIdx.x == 0) where = -1;
  __syncthreads();
  if (values[threadIdx.x] % 16 == wanted) where = threadIdx.x;  // BUG races: where
  __syncthreads();
  if (threadIdx.x == 0) *found = where;
}
CASE(wrong_several_write_what_they_found) { find<<<1, 64>>>(unwritten<int>(1), numbers<int>(64), 5); }

// Many threads write, but all write the same value, which is allowed.
__global__ void contains_right(int* found, const int* values, int wanted) {
  __shared__ bool is_there;
  if (threadIdx.x == 0) is_there = false;
  __syncthreads();
  if (values[threadIdx.x] % 16 == wanted) is_there = true;
  __syncthreads();
  if (threadIdx.x == 0) *found = is_there;
}
CASE(right_all_write_the_same) {
  int* found = unwritten<int>(1);
  contains_right<<<1, 64>>>(found, numbers<int>(64), 5);
  expect_one(found, 1);
}

__global__ void share_scale(float* out, const float* in) {
  __shared__ float scale;
  if (threadIdx.x == 0) scale = 1 / in[0];     // BUG races: scale
  out[threadIdx.x] = in[threadIdx.x] * scale;  // BUG races: scale
}
CASE(wrong_first_thread_tells_the_others) {
  share_scale<<<1, 64>>>(unwritten<float>(64), filled<float>(64, [](int) { return 2; }));
}

// ---- a barrier at the wrong place

__global__ void double_buffered(int* out, const int* in, int rows) {
  __shared__ int row[2][64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int k = 0; k < rows; k++) {
    __syncthreads();
    row[k % 2][t] = in[k * 64 + t];  // BUG races: row
    sum += row[k % 2][63 - t];       // BUG races: row
  }
  out[t] = sum;
}
CASE(wrong_barrier_before_the_write) {
  double_buffered<<<1, 64>>>(unwritten<int>(64), numbers<int>(64 * 3), 3);
}

// With two rows, one barrier per step is enough: before a row is written again, all threads have passed the
// next barrier.
__global__ void double_buffered_right(int* out, const int* in, int rows) {
  __shared__ int row[2][64];
  const int t = threadIdx.x;
  int sum = 0;
  for (int k = 0; k < rows; k++) {
    row[k % 2][t] = in[k * 64 + t];
    __syncthreads();
    sum += row[k % 2][63 - t];
  }
  out[t] = sum;
}
CASE(right_double_buffer) {
  int* out = unwritten<int>(64);
  double_buffered_right<<<1, 64>>>(out, numbers<int>(64 * 3), 3);
  expect_each(out, 64, [](int i) { return 3 * 64 + 3 * (63 - i); });
}

// ---- accesses that only seem to conflict

// Neighbouring threads write neighbouring bytes of a word.
__global__ void mark_right(int* out, const int* in) {
  __shared__ alignas(4) unsigned char is_odd[64];
  is_odd[threadIdx.x] = in[threadIdx.x] % 2;
  __syncthreads();
  if (threadIdx.x < 16) out[threadIdx.x] = reinterpret_cast<int*>(is_odd)[threadIdx.x];
}
CASE(right_neighbouring_bytes) {
  int* out = unwritten<int>(16);
  mark_right<<<1, 64>>>(out, numbers<int>(64));
  expect_each(out, 16, [](int) { return 0x01000100; });
}

// The last thread to arrive computes the sum; the fence and the counter order the writes of the others.
__global__ void last_thread_right(int* total, const int* in) {
  __shared__ int values[64], done;
  if (threadIdx.x == 0) done = 0;
  __syncthreads();
  values[threadIdx.x] = in[threadIdx.x];
  __threadfence_block();
  if (atomicAdd(&done, 1) < 63) return;
  __threadfence_block();
  int sum = 0;
  for (int i = 0; i < 64; i++) sum += values[i];
  *total = sum;
}
CASE(right_last_thread_adds_up) {
  int* total = unwritten<int>(1);
  last_thread_right<<<1, 64>>>(total, numbers<int>(64));
  expect_one(total, 2016);
}

int main(int words, char** word) { return run_cases(words, word); }
