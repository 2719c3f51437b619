// Managed variables and references: memory that host and device share.
#include "case.h"

__managed__ int total;
__managed__ int counts[8] = {1, 2, 3, 4, 5, 6, 7, 8};

__global__ void count_up(int last) {
  if (threadIdx.x <= last) counts[threadIdx.x] += 1;  // BUG memory: counts
}
CASE(wrong_past_the_end_of_a_managed_variable) { count_up<<<1, 32>>>(8); }

__global__ void count_each(int last) {
  if (threadIdx.x <= last) counts[threadIdx.x] += 1;
}
CASE(right_all_of_a_managed_variable) {
  count_each<<<1, 32>>>(7);
  check(cudaDeviceSynchronize());
  for (int i = 0; i < 8; i++) expect(counts[i] == i + 2);
}

CASE(wrong_free_of_a_managed_variable) {
  cudaFree(&total);  // BUG memory: total
}

__global__ void add_to_total(int value) { atomicAdd(&total, value); }
CASE(right_managed_variable_for_host_and_device) {
  total = 10;
  add_to_total<<<2, 4>>>(1);
  check(cudaDeviceSynchronize());
  expect(total == 18);
}

CASE(wrong_managed_variable_read_too_early) {
  total = 10;
  add_to_total<<<2, 4>>>(1);
  const int early = total;  // BUG streams: total
  check(cudaDeviceSynchronize());
  std::printf("%d\n", early);
}

CASE(wrong_managed_variable_written_too_early) {
  add_to_total<<<2, 4>>>(1);
  total = 10;  // BUG streams: total
  check(cudaDeviceSynchronize());
}

CASE(right_managed_variable_that_the_kernel_does_not_use) {
  add_to_total<<<2, 4>>>(1);
  counts[0] = 7;
  check(cudaDeviceSynchronize());
  expect(counts[0] == 7);
}

__global__ void copy_total(int* out) { *out = total; }
CASE(right_managed_variable_that_both_read) {
  int* out = unwritten<int>(1);
  total = 3;
  copy_total<<<1, 1>>>(out);
  expect(total == 3);
  check(cudaDeviceSynchronize());
  expect_one(out, 3);
}

// ---- parameters that are references

__global__ void set_on_the_host(int& x) { x = 42; }  // BUG memory: x
CASE(wrong_reference_to_a_variable_of_the_host) {
  int x = 1;
  set_on_the_host<<<1, 1>>>(x);
}

__global__ void set(int& x) { x = 42; }
CASE(right_reference_to_managed_memory) {
  int* x;
  check(cudaMallocManaged(&x, sizeof(int)));
  *x = 1;
  set<<<1, 1>>>(*x);
  check(cudaDeviceSynchronize());
  expect(*x == 42);
  check(cudaFree(x));
}

CASE(wrong_host_reads_a_reference_too_early) {
  int* x;
  check(cudaMallocManaged(&x, sizeof(int)));
  *x = 1;
  set<<<1, 1>>>(*x);
  const int early = *x;  // BUG streams: x
  check(cudaDeviceSynchronize());
  std::printf("%d\n", early);
  check(cudaFree(x));
}

template <typename T>
__global__ void copy(T& to, const T& from) {
  to = from;
}
CASE(right_references_of_a_template) {
  int* x;
  check(cudaMallocManaged(&x, 2 * sizeof(int)));
  x[0] = 5;
  copy<<<1, 1>>>(x[1], x[0]);
  check(cudaDeviceSynchronize());
  expect(x[1] == 5);
  check(cudaFree(x));
}

int main(int words, char** word) { return run_cases(words, word); }
