// Launches: the device rejects them, and the kernel never runs.
#include "case.h"

__global__ void fill(int* out, int n) {
  const int i = (blockIdx.y * gridDim.x + blockIdx.x) * blockDim.x * blockDim.y + threadIdx.y * blockDim.x +
                threadIdx.x;
  if (i < n) out[i] = i;
}

CASE(wrong_too_many_threads) {
  fill<<<1, dim3(64, 32)>>>(unwritten<int>(64), 64);  // BUG launch: fill
}

CASE(wrong_block_too_deep) {
  fill<<<1, dim3(1, 1, 128)>>>(unwritten<int>(64), 64);  // BUG launch: fill
}

CASE(wrong_no_threads) {
  const int threads = 0;
  fill<<<4, threads>>>(unwritten<int>(64), 64);  // BUG launch: fill
}

CASE(wrong_empty_grid) {
  const int n = 100, threads = 256;
  fill<<<n / threads, threads>>>(unwritten<int>(n), n);  // BUG launch: fill
}

CASE(wrong_nothing_to_do) {
  const int n = 0;
  fill<<<(n + 255) / 256, 256>>>(nullptr, n);  // BUG launch: fill
}

CASE(wrong_batch_beyond_grid_y) {
  const int batch = 70000;
  fill<<<dim3(1, batch), 32>>>(unwritten<int>(64), 64);  // BUG launch: fill
}

__global__ void reverse(int* out, int n) {
  extern __shared__ int values[];
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x < n) out[threadIdx.x] = values[n - 1 - threadIdx.x];
}
CASE(wrong_too_much_shared_memory) {
  reverse<<<1, 64, 64 * 1024>>>(unwritten<int>(64), 64);  // BUG launch: reverse
}

__global__ void reverse_with_table(int* out, int n) {
  __shared__ int table[8 * 1024];
  extern __shared__ int values[];
  table[threadIdx.x] = n - 1 - int(threadIdx.x);
  values[threadIdx.x] = threadIdx.x;
  __syncthreads();
  if (threadIdx.x < n) out[threadIdx.x] = values[table[threadIdx.x]];
}
CASE(wrong_too_much_with_the_static_part) {
  reverse_with_table<<<1, 64, 32 * 1024>>>(unwritten<int>(64), 64);  // BUG launch: reverse_with_table
}

CASE(wrong_nobody_looks) {
  fill<<<1, 2048>>>(nullptr, 0);  // BUG launch: fill
  cudaDeviceSynchronize();
  std::exit(0);
}

// ---- launches at the limits

CASE(right_1024_threads) {
  int* out = unwritten<int>(1024);
  fill<<<1, dim3(32, 32)>>>(out, 1024);
  expect_each(out, 1024, [](int i) { return i; });
}

CASE(right_1024_threads_and_64_deep) {
  int* out = unwritten<int>(4);
  fill<<<1, dim3(4, 4, 64)>>>(out, 1);
  expect_one(out, 0);
}

CASE(right_65535_rows) {
  int* out = unwritten<int>(64);
  fill<<<dim3(1, 65535), 1>>>(out, 64);
  expect_each(out, 64, [](int i) { return i; });
}

CASE(right_many_blocks_in_x) {
  int* out = unwritten<int>(64);
  fill<<<70000, 1>>>(out, 64);
  expect_each(out, 64, [](int i) { return i; });
}

CASE(right_nothing_to_do) {
  const int n = 0, blocks = (n + 255) / 256;
  if (blocks) fill<<<blocks, 256>>>(nullptr, n);
}

CASE(right_48_kib) {
  int* out = unwritten<int>(64);
  reverse<<<1, 64, 48 * 1024>>>(out, 64);
  expect_each(out, 64, [](int i) { return 63 - i; });
}

CASE(right_more_when_asked_for) {
  int* out = unwritten<int>(64);
  check(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  reverse<<<1, 64, 64 * 1024>>>(out, 64);
  expect_each(out, 64, [](int i) { return 63 - i; });
}

__global__ void reverse_too(int* out, int n) {
  extern __shared__ int space[];
  space[threadIdx.x] = threadIdx.x;
  __syncthreads();
  out[threadIdx.x] = space[n - 1 - threadIdx.x];
}
CASE(wrong_more_asked_for_another_kernel) {
  check(cudaFuncSetAttribute(reverse, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  reverse_too<<<1, 64, 64 * 1024>>>(unwritten<int>(64), 64);  // BUG launch: reverse_too
}

CASE(right_more_for_a_kernel_in_a_variable) {
  int* out = unwritten<int>(64);
  const auto kernel = reverse_too;
  check(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, 64 * 1024));
  kernel<<<1, 64, 64 * 1024>>>(out, 64);
  expect_each(out, 64, [](int i) { return 63 - i; });
}

CASE(right_static_and_dynamic) {
  int* out = unwritten<int>(64);
  reverse_with_table<<<1, 64, 16 * 1024>>>(out, 64);
  expect_each(out, 64, [](int i) { return 63 - i; });
}

CASE(right_limit_asked_of_the_device) {
  int device, most;
  check(cudaGetDevice(&device));
  check(cudaDeviceGetAttribute(&most, cudaDevAttrMaxThreadsPerBlock, device));
  int* out = unwritten<int>(most);
  fill<<<1, most>>>(out, most);
  expect_each(out, most, [](int i) { return i; });
}

int main(int words, char** word) { return run_cases(words, word); }
