// Read-only memory: a kernel writes to constant memory, or to memory that the host passed as const.
#include "case.h"

// ---- a cast removes the const

__global__ void relu(float* out, const float* in, int n) {
  const int i = threadIdx.x;
  if (i >= n) return;
  float* x = (float*)in;
  if (x[i] < 0) x[i] = 0;  // BUG memory: in
  out[i] = x[i];
}
CASE(wrong_input_changed_in_place) {
  relu<<<1, 64>>>(unwritten<float>(64), filled<float>(64, [](int i) { return i - 32; }), 64);
}

__global__ void relu_right(float* out, const float* in, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = in[i] < 0 ? 0 : in[i];
}
CASE(right_output_of_its_own) {
  float* out = unwritten<float>(64);
  relu_right<<<1, 64>>>(out, filled<float>(64, [](int i) { return i - 32; }), 64);
  expect_each(out, 64, [](int i) { return i < 32 ? 0 : i - 32; });
}
CASE(right_in_place_by_the_host) {  // one array for both arguments: it may be written through `out`
  float* x = filled<float>(64, [](int i) { return i - 32; });
  relu_right<<<1, 64>>>(x, x, 64);
  expect_each(x, 64, [](int i) { return i < 32 ? 0 : i - 32; });
}

// The vector type in the cast lacks the const of the argument.
__global__ void normalise(float* sums, const float* rows) {
  float4* row = (float4*)(rows + 4 * threadIdx.x);
  const float sum = row->x + row->y + row->z + row->w;
  *row = make_float4(row->x / sum, row->y / sum, row->z / sum, row->w / sum);  // BUG memory: rows
  sums[threadIdx.x] = sum;
}
CASE(wrong_vector_cast) {
  normalise<<<1, 8>>>(unwritten<float>(8), filled<float>(32, [](int i) { return i + 1; }));
}

__global__ void normalise_right(float* sums, const float* rows) {
  const float4 row = *reinterpret_cast<const float4*>(rows + 4 * threadIdx.x);
  sums[threadIdx.x] = row.x + row.y + row.z + row.w;
}
CASE(right_vector_cast) {
  float* sums = unwritten<float>(8);
  normalise_right<<<1, 8>>>(sums, numbers<float>(32));
  expect_each(sums, 8, [](int i) { return 16 * i + 6; });
}

// The caller exchanges two arguments, so the kernel writes to its input.
__device__ void add(float* to, const float* from) {
  to[threadIdx.x] += from[threadIdx.x];  // BUG memory: grad
}
__global__ void accumulate(float* total, const float* grad) { add(const_cast<float*>(grad), total); }
CASE(wrong_arguments_exchanged) { accumulate<<<1, 32>>>(zeros<float>(32), numbers<float>(32)); }

__device__ void add_right(float* to, const float* from) { to[threadIdx.x] += from[threadIdx.x]; }
__global__ void accumulate_right(float* total, const float* grad) { add_right(total, grad); }
CASE(right_arguments) {
  float* total = zeros<float>(32);
  accumulate_right<<<1, 32>>>(total, numbers<float>(32));
  expect_each(total, 32, [](int i) { return i; });
}

// Two halves of one array, one of them read only.
__global__ void copy_half_right(float* out, const float* in) { out[threadIdx.x] = in[threadIdx.x]; }
CASE(right_two_parts_of_an_array) {
  float* x = numbers<float>(64);
  copy_half_right<<<1, 32>>>(x + 32, x);
  expect_each(x, 64, [](int i) { return i % 32; });
}

// ---- constant memory

__constant__ int limits[4];
__global__ void clamp(int* out) {
  int* limit = const_cast<int*>(limits);
  if (threadIdx.x == 0) limit[0] = 5;  // BUG memory: limits
  out[threadIdx.x] = min(int(threadIdx.x), limits[1]);
}
CASE(wrong_constant_written) {
  const int host[4] = {0, 10, 20, 30};
  check(cudaMemcpyToSymbol(limits, host, sizeof(host)));
  clamp<<<1, 32>>>(unwritten<int>(32));
}

__device__ int calls;
__global__ void clamp_right(int* out) {
  out[threadIdx.x] = min(int(threadIdx.x), limits[1]);
  if (threadIdx.x == 0) calls = calls + 1;
}
CASE(right_constant_and_variable) {
  const int host[4] = {0, 10, 20, 30};
  int* out = unwritten<int>(32);
  check(cudaMemcpyToSymbol(limits, host, sizeof(host)));
  clamp_right<<<1, 32>>>(out);
  expect_each(out, 32, [](int i) { return i < 10 ? i : 10; });
}

int main(int words, char** word) { return run_cases(words, word); }
