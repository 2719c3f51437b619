// Tensor cores and the copies that feed them: wmma, and mma, ldmatrix and cp.async in PTX.
#include <mma.h>

#include "case.h"

using namespace nvcuda;

using Left = wmma::fragment<wmma::matrix_a, 16, 16, 16, half, wmma::row_major>;
using Right = wmma::fragment<wmma::matrix_b, 16, 16, 16, half, wmma::row_major>;
using Sum = wmma::fragment<wmma::accumulator, 16, 16, 16, float>;

// ---- the edge of a matrix

__global__ void square(float* out, const half* x, int rows) {
  Left left;
  Right right;
  Sum sum;
  wmma::fill_fragment(sum, 0.0f);
  for (int row = 0; row < rows; row += 16) {
    wmma::load_matrix_sync(left, x + row * 16, 16);  // BUG memory: x
    wmma::load_matrix_sync(right, x, 16);
    wmma::mma_sync(sum, left, right, sum);
  }
  wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
CASE(wrong_rows_that_are_no_multiple_of_16) {
  square<<<1, 32>>>(unwritten<float>(256), zeros<half>(24 * 16), 24);
}
CASE(right_rows_that_are_a_multiple_of_16) {
  float* out = unwritten<float>(256);
  square<<<1, 32>>>(out, filled<half>(256, [](int) { return 1; }), 16);
  expect_each(out, 256, [](int) { return 16; });
}

__global__ void store_at(float* out, int column) {
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::store_matrix_sync(out + column, sum, 32, wmma::mem_row_major);  // BUG memory
}
CASE(wrong_pointer_that_is_not_aligned) { store_at<<<1, 32>>>(unwritten<float>(16 * 32), 4); }

__global__ void store_with_pitch(float* out, int pitch) {
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::store_matrix_sync(out, sum, pitch, wmma::mem_row_major);  // BUG memory
}
CASE(wrong_rows_of_17_elements) { store_with_pitch<<<1, 32>>>(unwritten<float>(16 * 17), 17); }

__global__ void store_right(float* out, int column, int pitch) {
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  wmma::store_matrix_sync(out + column, sum, pitch, wmma::mem_row_major);
}
CASE(right_aligned_rows) { store_right<<<1, 32>>>(unwritten<float>(16 * 32), 8, 20); }
CASE(right_aligned_column) { store_right<<<1, 32>>>(unwritten<float>(16 * 32), 16, 32); }

__global__ void negate(float* x) {
  Sum sum;
  wmma::load_matrix_sync(sum, x, 16, wmma::mem_col_major);
  for (float& element : sum.x) element = -element;
  wmma::store_matrix_sync(x, sum, 16, wmma::mem_col_major);
}
CASE(right_in_place) {
  float* x = numbers<float>(256);
  negate<<<1, 32>>>(x);
  expect_each(x, 256, [](int i) { return -i; });
}

// ---- all lanes of a warp

__global__ void half_a_warp(float* out) {
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  if (threadIdx.x < 16) wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);  // BUG barriers
}
CASE(wrong_store_by_half_a_warp) { half_a_warp<<<1, 32>>>(unwritten<float>(256)); }

__global__ void whole_warps(float* out) {
  Sum sum;
  wmma::fill_fragment(sum, 1.0f);
  if (threadIdx.x / 32 < 2)
    wmma::store_matrix_sync(out + threadIdx.x / 32 * 256, sum, 16, wmma::mem_row_major);
}
CASE(right_store_by_two_of_three_warps) {
  float* out = unwritten<float>(512);
  whole_warps<<<1, 96>>>(out);
  expect_each(out, 512, [](int) { return 1; });
}

__global__ void multiply_apart(float* out) {
  float sum[4] = {};
  const unsigned ones = 0x3c003c00;
  if (threadIdx.x % 2)
    asm volatile(  // BUG barriers
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(ones));
  else
    asm volatile(  // BUG barriers
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(ones));
  out[threadIdx.x] = 0 * sum[0];
}
CASE(wrong_mma_in_two_branches) { multiply_apart<<<1, 32>>>(unwritten<float>(32)); }

__global__ void multiply_together(float* out, int steps) {
  float sum[4] = {};
  const unsigned ones = 0x3c003c00;
  for (int step = 0; step < steps; step++)
    asm volatile(
        "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %4}, {%4}, {%0, %1, %2, %3};"
        : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
        : "r"(ones));
  out[threadIdx.x] = sum[3];
}
CASE(right_mma_in_a_loop) {
  float* out = unwritten<float>(32);
  multiply_together<<<1, 32>>>(out, 3);
  expect_each(out, 32, [](int) { return 24; });
}

// ---- shared memory

__global__ void load_early(float* out, const half* x) {
  __shared__ alignas(32) half tile[256];
  for (int i = threadIdx.x; i < 256; i += 64) tile[i] = x[i];  // BUG races: tile
  Left left;
  wmma::load_matrix_sync(left, tile, 16);  // BUG races: tile
  out[threadIdx.x] = float(left.x[0]);
}
CASE(wrong_load_without_a_barrier) {
  load_early<<<1, 64>>>(unwritten<float>(64), filled<half>(256, [](int i) { return i + 1; }));
}

__global__ void load_after_barrier(float* out, const half* x) {
  __shared__ alignas(32) half tile[256];
  for (int i = threadIdx.x; i < 256; i += 64) tile[i] = x[i];
  __syncthreads();
  Left left;
  Right right;
  Sum sum;
  wmma::load_matrix_sync(left, tile, 16);
  wmma::load_matrix_sync(right, x, 16);
  wmma::fill_fragment(sum, 0.0f);
  wmma::mma_sync(sum, left, right, sum);
  if (threadIdx.x < 32) wmma::store_matrix_sync(out, sum, 16, wmma::mem_row_major);
}
CASE(right_load_after_a_barrier) {
  float* out = unwritten<float>(256);
  load_after_barrier<<<1, 64>>>(out, filled<half>(256, [](int) { return 0.5; }));
  expect_each(out, 256, [](int) { return 4; });
}

__device__ unsigned address_of(const void* shared) { return unsigned(__cvta_generic_to_shared(shared)); }

__global__ void load_rows_early(unsigned* out) {
  __shared__ alignas(16) half tile[8][8];
  for (int i = threadIdx.x; i < 64; i += 32) tile[i / 8][i % 8] = half(i);  // BUG races: tile
  unsigned part;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"  // BUG races: tile
               : "=r"(part)
               : "r"(address_of(tile[threadIdx.x % 8])));
  out[threadIdx.x] = part;
}
CASE(wrong_ldmatrix_without_a_barrier) { load_rows_early<<<1, 32>>>(unwritten<unsigned>(32)); }

__global__ void load_rows(unsigned* out, int pitch) {
  extern __shared__ half rows[];
  for (int i = threadIdx.x; i < 8 * pitch; i += 32) rows[i] = half(i);
  __syncwarp();
  unsigned part;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"  // BUG memory: rows
               : "=r"(part)
               : "r"(address_of(rows + threadIdx.x % 8 * pitch)));
  out[threadIdx.x] = part;
}
CASE(wrong_ldmatrix_of_rows_of_9_elements) { load_rows<<<1, 32, 144>>>(unwritten<unsigned>(32), 9); }

__global__ void load_rows_right(unsigned* out, int pitch) {
  extern __shared__ half rows[];
  for (int i = threadIdx.x; i < 8 * pitch; i += 32) rows[i] = half(i);
  __syncwarp();
  unsigned part;
  asm volatile("ldmatrix.sync.aligned.m8n8.x1.shared.b16 {%0}, [%1];"
               : "=r"(part)
               : "r"(address_of(rows + threadIdx.x % 8 * pitch)));
  out[threadIdx.x] = part;
}
CASE(right_ldmatrix_of_padded_rows) { load_rows_right<<<1, 32, 256>>>(unwritten<unsigned>(32), 16); }

// ---- copies that arrive later

__device__ void copy_16(float* shared, const float* x) {
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(address_of(shared)), "l"(x) : "memory");
}

__global__ void read_without_wait(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  copy_16(tile + 4 * threadIdx.x, x + 4 * threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = tile[threadIdx.x];  // BUG races: tile
}
CASE(wrong_read_without_a_wait) { read_without_wait<<<1, 32>>>(unwritten<float>(32), numbers<float>(128)); }

__global__ void wait_after_barrier(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  const unsigned to = address_of(tile + 4 * threadIdx.x);
  const float* from = x + 4 * threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));  // BUG races: tile
  __syncthreads();
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = tile[127 - 4 * threadIdx.x];  // BUG races: tile
}
CASE(wrong_wait_after_the_barrier) {
  wait_after_barrier<<<1, 32>>>(unwritten<float>(32), numbers<float>(128));
}

__global__ void wait_without_barrier(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  const unsigned to = address_of(tile + 4 * threadIdx.x);
  const float* from = x + 4 * threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));  // BUG races: tile
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = tile[127 - 4 * threadIdx.x];  // BUG races: tile
}

CASE(wrong_wait_without_a_barrier) {
  wait_without_barrier<<<1, 32>>>(unwritten<float>(32), filled<float>(128, [](int i) { return i + 1; }));
}

__global__ void wait_and_barrier(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  copy_16(tile + 4 * threadIdx.x, x + 4 * threadIdx.x);
  asm volatile("cp.async.wait_all;");
  __syncthreads();
  out[threadIdx.x] = tile[127 - 4 * threadIdx.x];
}
CASE(right_copy_then_wait_then_barrier) {
  float* out = unwritten<float>(32);
  wait_and_barrier<<<1, 32>>>(out, numbers<float>(128));
  expect_each(out, 32, [](int i) { return 127 - 4 * i; });
}

__global__ void wait_for_too_few(float* out, const float* x) {
  __shared__ alignas(16) float tile[2][128];
  for (int stage = 0; stage < 2; stage++) {
    copy_16(tile[stage] + 4 * threadIdx.x, x + 128 * stage + 4 * threadIdx.x);
    asm volatile("cp.async.commit_group;");
  }
  asm volatile("cp.async.wait_group 1;");
  __syncthreads();
  out[threadIdx.x] = tile[0][threadIdx.x] + tile[1][threadIdx.x];  // BUG races: tile
}
CASE(wrong_wait_for_too_few_groups) {
  wait_for_too_few<<<1, 32>>>(unwritten<float>(32), numbers<float>(256));
}

__global__ void two_groups(float* out, const float* x) {
  __shared__ alignas(16) float tile[2][128];
  for (int stage = 0; stage < 2; stage++) {
    copy_16(tile[stage] + 4 * threadIdx.x, x + 128 * stage + 4 * threadIdx.x);
    asm volatile("cp.async.commit_group;");
  }
  asm volatile("cp.async.wait_group 1;");
  __syncthreads();
  float sum = tile[0][threadIdx.x];
  asm volatile("cp.async.wait_group 0;");
  __syncthreads();
  out[threadIdx.x] = sum + tile[1][threadIdx.x];
}
CASE(right_wait_for_each_group) {
  float* out = unwritten<float>(32);
  two_groups<<<1, 32>>>(out, numbers<float>(256));
  expect_each(out, 32, [](int i) { return 128 + 2 * i; });
}

__global__ void copy_past_end(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  const unsigned to = address_of(tile + 4 * threadIdx.x);
  const float* from = x + 4 * threadIdx.x;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16;" ::"r"(to), "l"(from));  // BUG memory: x
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = tile[4 * threadIdx.x];
}
CASE(wrong_copy_past_the_end) { copy_past_end<<<1, 32>>>(unwritten<float>(32), numbers<float>(100)); }

__global__ void copy_with_zeros(float* out, const float* x, int n) {
  __shared__ alignas(16) float tile[128];
  const int first = 4 * threadIdx.x, bytes = first < n ? 16 : 0;
  asm volatile("cp.async.ca.shared.global [%0], [%1], 16, %2;" ::"r"(address_of(tile + first)),
               "l"(bytes ? x + first : x), "r"(bytes)
               : "memory");
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = tile[first];
}
CASE(right_copy_with_zeros_behind_the_end) {
  float* out = unwritten<float>(32);
  copy_with_zeros<<<1, 32>>>(out, numbers<float>(100), 100);
  expect_each(out, 32, [](int i) { return i < 25 ? 4 * i : 0; });
}

__global__ void copy_own(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  copy_16(tile + 4 * threadIdx.x, x + 4 * threadIdx.x);
  asm volatile("cp.async.wait_all;");
  out[threadIdx.x] = tile[4 * threadIdx.x + 3];  // its own copy: no barrier is needed
}
CASE(right_own_copy_without_a_barrier) {
  float* out = unwritten<float>(32);
  copy_own<<<1, 32>>>(out, numbers<float>(128));
  expect_each(out, 32, [](int i) { return 4 * i + 3; });
}

__global__ void copy_twice(float* out, const float* x) {
  __shared__ alignas(16) float tile[128];
  for (int stage = 0; stage < 2; stage++) {
    copy_16(tile + 4 * threadIdx.x, x + 128 * stage + 4 * threadIdx.x);
    asm volatile("cp.async.wait_all;");
    __syncthreads();
    out[32 * stage + threadIdx.x] = tile[127 - 4 * threadIdx.x];
    __syncthreads();
  }
}
CASE(right_tile_that_is_used_twice) {
  float* out = unwritten<float>(64);
  copy_twice<<<1, 32>>>(out, numbers<float>(256));
  expect_each(out, 64, [](int i) { return 127 - 4 * (i % 32) + i / 32 * 128; });
}

int main(int words, char** word) { return run_cases(words, word); }
