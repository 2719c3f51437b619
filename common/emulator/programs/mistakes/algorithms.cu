// Algorithms of CUB and Thrust: results that are too long for their memory, and storage that is used again
// too early.
#include <thrust/device_ptr.h>
#include <thrust/execution_policy.h>
#include <thrust/reduce.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <cub/cub.cuh>
#include <cuda/functional>

#include "case.h"

using Reduce = cub::BlockReduce<int, 64>;
using Scan = cub::BlockScan<int, 64>;

// ---- blocks

__global__ void two_sums(const int* x, int* sums) {
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(x[threadIdx.x]);  // BUG races: storage
  const int twice = Reduce(storage).Sum(2 * x[threadIdx.x]);
  if (threadIdx.x == 0) sums[0] = sum + twice;
}

CASE(wrong_storage_used_again_without_a_barrier) {
  two_sums<<<1, 64>>>(numbers<int>(64), unwritten<int>(1));
  cudaDeviceSynchronize();
}

__global__ void sum_of_half(const int* x, int* sum) {
  __shared__ typename Reduce::TempStorage storage;
  const int all = Reduce(storage).Sum(x[threadIdx.x]);  // BUG initialisation: storage
  if (threadIdx.x == 0) *sum = all;
}

CASE(wrong_block_of_fewer_threads) {
  sum_of_half<<<1, 32>>>(numbers<int>(64), unwritten<int>(1));
  cudaDeviceSynchronize();
}

__global__ void two_sums_in_order(const int* x, int* sums) {
  __shared__ typename Reduce::TempStorage storage;
  const int sum = Reduce(storage).Sum(x[threadIdx.x]);
  __syncthreads();
  const int largest = Reduce(storage).Reduce(x[threadIdx.x], cuda::maximum<>());
  if (threadIdx.x == 0) sums[0] = sum + largest;
}

CASE(right_barrier_between_two_uses) {
  int* sums = unwritten<int>(1);
  two_sums_in_order<<<1, 64>>>(numbers<int>(64), sums);
  expect_one(sums, 64 * 63 / 2 + 63);
}

__global__ void sum_of_valid(const int* x, int* sum, int count) {
  __shared__ typename Reduce::TempStorage storage;
  const int mine = threadIdx.x < count ? x[threadIdx.x] : 0;
  const int all = Reduce(storage).Sum(mine, count);
  if (threadIdx.x == 0) *sum = all;
}

CASE(right_only_some_values_are_valid) {
  int* sum = unwritten<int>(1);
  sum_of_valid<<<1, 64>>>(numbers<int>(40), sum, 40);
  expect_one(sum, 40 * 39 / 2);
}

__global__ void two_storages(const int* x, int* out) {
  __shared__ typename Reduce::TempStorage of_sum;
  __shared__ typename Scan::TempStorage of_scan;
  const int sum = Reduce(of_sum).Sum(x[threadIdx.x]);
  Scan(of_scan).ExclusiveSum(x[threadIdx.x], out[threadIdx.x]);
  if (threadIdx.x == 0) out[64] = sum;
}

CASE(right_each_function_with_its_own_storage) {
  int* out = unwritten<int>(65);
  two_storages<<<1, 64>>>(numbers<int>(64), out);
  expect_each(out, 65, [](int i) { return i * (i - 1) / 2; });
}

// ---- arrays

CASE(wrong_scan_with_a_short_result) {
  int *x = numbers<int>(64), *sums = unwritten<int>(63);
  size_t bytes = 0;
  check(cub::DeviceScan::InclusiveSum(nullptr, bytes, x, sums, 64));
  cub::DeviceScan::InclusiveSum(unwritten<char>(int(bytes)), bytes, x, sums, 64);  // BUG memory: d_out
  cudaDeviceSynchronize();
}

CASE(right_scan) {
  int *x = numbers<int>(64), *sums = unwritten<int>(64);
  size_t bytes = 0;
  check(cub::DeviceScan::InclusiveSum(nullptr, bytes, x, sums, 64));
  check(cub::DeviceScan::InclusiveSum(unwritten<char>(int(bytes)), bytes, x, sums, 64));
  expect_each(sums, 64, [](int i) { return i * (i + 1) / 2; });
}

struct LookUp {
  const int* table;
  __host__ __device__ int operator()(int x) const {
    return table[x];  // BUG memory: array
  }
};

CASE(wrong_index_in_a_function_object) {
  int *x = numbers<int>(64), *table = numbers<int>(63);
  try {
    thrust::transform(thrust::device, x, x + 64, x, LookUp{table});
  } catch (const thrust::system_error&) {
  }
}

CASE(right_function_object) {
  int *x = numbers<int>(64), *table = filled<int>(64, [](int i) { return 63 - i; });
  thrust::transform(thrust::device, x, x + 64, x, LookUp{table});
  expect_each(x, 64, [](int i) { return 63 - i; });
}

CASE(wrong_reduction_of_uninitialised_memory) {
  int* x = unwritten<int>(64);
  const thrust::device_ptr<int> first(x);
  thrust::reduce(first, first + 64);  // BUG initialisation: first
}

CASE(right_sort) {
  int* x = filled<int>(64, [](int i) { return i * 37 % 64; });
  const thrust::device_ptr<int> first(x);
  thrust::sort(first, first + 64);
  expect_each(x, 64, [](int i) { return i; });
}

int main(int words, char** word) { return run_cases(words, word); }
