// Global memory: reads and writes outside the intended array.
#include "case.h"

// ---- guards

__global__ void scale(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i > n) return;
  const float value = in[i];  // BUG memory: in
  out[i] = 2 * value;
}
CASE(wrong_guard_off_by_one) { scale<<<4, 256>>>(unwritten<float>(1000), numbers<float>(1000), 1000); }

__global__ void scale_right(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float value = in[i];
  out[i] = 2 * value;
}
CASE(right_guard) {
  float* out = unwritten<float>(1000);
  scale_right<<<4, 256>>>(out, numbers<float>(1000), 1000);
  expect_each(out, 1000, [](int i) { return 2 * i; });
}

CASE(right_no_elements) { scale_right<<<1, 256>>>(nullptr, nullptr, 0); }

__global__ void fill(float* out, int n, float value) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (threadIdx.x < n) out[i] = value;  // BUG memory: out
}
CASE(wrong_guard_always_true) { fill<<<3, 128>>>(unwritten<float>(300), 300, 1); }

__global__ void copy_if_positive(int* out, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (in[i] > 0 && i < n) out[i] = in[i];  // BUG memory: in
}
CASE(wrong_guard_comes_too_late) { copy_if_positive<<<1, 64>>>(zeros<int>(50), numbers<int>(50), 50); }

__global__ void copy_if_positive_right(int* out, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n && in[i] > 0) out[i] = in[i];
}
CASE(right_guard_comes_first) {
  int* out = zeros<int>(50);
  copy_if_positive_right<<<1, 64>>>(out, numbers<int>(50), 50);
  expect_each(out, 50, [](int i) { return i; });
}

__global__ void add_up(float* sums, const float* in, int n) {
  float sum = 0;
  for (int i = threadIdx.x; i <= n; i += blockDim.x) sum += in[i];  // BUG memory: in
  sums[threadIdx.x] = sum;
}
CASE(wrong_stride_loop_end) { add_up<<<1, 32>>>(unwritten<float>(32), numbers<float>(320), 320); }

__global__ void add_up_right(float* sums, const float* in, int n) {
  float sum = 0;
  for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x) sum += in[i];
  sums[blockIdx.x * blockDim.x + threadIdx.x] = sum;
}
CASE(right_grid_stride_loop) {
  float* sums = unwritten<float>(128);
  add_up_right<<<2, 64>>>(sums, numbers<float>(1000), 1000);
  expect_one(sums, 128 * 28);
}

// ---- neighbours, rows, columns

__global__ void blur(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  const float left = in[i - 1];  // BUG memory: in
  out[i] = (left + in[i]) / 2;
}
CASE(wrong_left_edge) { blur<<<1, 64>>>(unwritten<float>(64), numbers<float>(64), 64); }

__global__ void blur_right(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = (in[i ? i - 1 : 0] + in[i] + in[min(i + 1, n - 1)]) / 3;
}
CASE(right_clamped_edges) {
  float* out = unwritten<float>(90);
  blur_right<<<1, 96>>>(out, filled<float>(90, [](int) { return 3; }), 90);
  expect_each(out, 90, [](int) { return 3; });
}

__global__ void differences(float* out, const float* in, int n) {
  const int i = threadIdx.x;
  if (i < n) out[i] = in[i] - in[i - 1];
}
CASE(right_negative_index_inside) {  // the kernel receives a pointer to the second element
  const float* in = numbers<float>(65);
  float* out = unwritten<float>(64);
  differences<<<1, 64>>>(out, in + 1, 64);
  expect_each(out, 64, [](int) { return 1; });
}

__global__ void transpose(float* out, const float* in, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  out[column * columns + row] = in[row * columns + column];  // BUG memory: out
}
CASE(wrong_transposed_stride) {
  transpose<<<dim3(3, 1), dim3(16, 16)>>>(unwritten<float>(480), numbers<float>(480), 12, 40);
}

__global__ void transpose_right(float* out, const float* in, int rows, int columns) {
  const int column = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y * blockDim.y + threadIdx.y;
  if (row >= rows || column >= columns) return;
  out[column * rows + row] = in[row * columns + column];
}
CASE(right_transpose) {
  float* out = unwritten<float>(480);
  transpose_right<<<dim3(3, 1), dim3(16, 16)>>>(out, numbers<float>(480), 12, 40);
  expect_each(out, 480, [](int i) { return i % 12 * 40 + i / 12; });
}

// The gates of a cell are next to each other in `z`, but the rows of `old_cell` have another length.
__global__ void update_cell(float* new_cell, const float* z, const float* old_cell, int batch, int state) {
  const int unit = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (unit >= state) return;
  const float gate = z[row * 3 * state + unit], candidate = z[row * 3 * state + 2 * state + unit];
  const float old = old_cell[row * 3 * state + unit];  // BUG memory: old_cell
  new_cell[row * state + unit] = old + gate * candidate;
}
CASE(wrong_row_stride) {
  update_cell<<<dim3(1, 4), 96>>>(unwritten<float>(4 * 70), numbers<float>(4 * 210), numbers<float>(4 * 70),
                                  4, 70);
}

__global__ void update_cell_right(float* new_cell, const float* z, const float* old_cell, int batch,
                                  int state) {
  const int unit = blockIdx.x * blockDim.x + threadIdx.x, row = blockIdx.y;
  if (unit >= state) return;
  const float gate = z[row * 3 * state + unit], candidate = z[row * 3 * state + 2 * state + unit];
  new_cell[row * state + unit] = old_cell[row * state + unit] + gate * candidate;
}
CASE(right_row_strides) {
  float* new_cell = unwritten<float>(4 * 70);
  const float *z = filled<float>(4 * 210, [](int i) { return i % 3; }), *old_cell = numbers<float>(4 * 70);
  update_cell_right<<<dim3(1, 4), 96>>>(new_cell, z, old_cell, 4, 70);
  expect_one(new_cell + 1, 1);
}

// ---- indices that come from data

__global__ void histogram(int* bins, const int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[values[i] / 10], 1);  // BUG memory: bins
}
CASE(wrong_bin_for_the_largest) {  // 100 / 10 is the index of an eleventh bin
  histogram<<<1, 128>>>(zeros<int>(10), numbers<int>(101), 101);
}

__global__ void histogram_right(int* bins, const int* values, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) atomicAdd(&bins[min(values[i] / 10, 9)], 1);
}
CASE(right_last_bin_takes_the_largest) {
  int* bins = zeros<int>(10);
  histogram_right<<<1, 128>>>(bins, numbers<int>(101), 101);
  expect_one(bins + 9, 11);
}

__global__ void gather_hashed(float* out, const float* table, int n) {
  const int hash = int(threadIdx.x * 2654435761u);
  out[threadIdx.x] = table[hash % n];  // BUG memory: table
}
CASE(wrong_negative_remainder) { gather_hashed<<<1, 32>>>(unwritten<float>(32), numbers<float>(1000), 1000); }

__global__ void gather_hashed_right(float* out, const float* table, int n) {
  const unsigned hash = threadIdx.x * 2654435761u;
  out[threadIdx.x] = table[hash % n];
}
CASE(right_unsigned_remainder) {
  gather_hashed_right<<<1, 32>>>(unwritten<float>(32), numbers<float>(1000), 1000);
}

__global__ void pick_diagonal(float* out, const float* corner, int n) {
  out[threadIdx.x] = corner[(n + int(threadIdx.x)) * n];  // BUG memory
}
CASE(wrong_far_away) { pick_diagonal<<<1, 2>>>(unwritten<float>(2), numbers<float>(64), 40000); }

// ---- host memory, and variables at file scope

__global__ void add_all(int* sum, const int* values, int n) {
  for (int i = 0; i < n; i++) *sum += values[i];  // BUG memory: values
}
CASE(wrong_host_array) {
  int* values = static_cast<int*>(std::malloc(8 * sizeof(int)));
  for (int i = 0; i < 8; i++) values[i] = i;
  add_all<<<1, 1>>>(zeros<int>(1), values, 8);
  check(cudaDeviceSynchronize());
  std::free(values);
}

CASE(wrong_device_array_read_by_the_host) {
  int* d_x;
  check(cudaMalloc(&d_x, 8 * sizeof(int)));
  check(cudaMemset(d_x, 0, 8 * sizeof(int)));
  std::printf("%d\n", d_x[7]);  // BUG memory: d_x
  check(cudaFree(d_x));
}

__global__ void add_all_right(int* sum, const int* values, int n) {
  for (int i = 0; i < n; i++) *sum += values[i];
}
CASE(right_pinned_array) {
  int *values, *sum = zeros<int>(1);
  check(cudaMallocHost(&values, 8 * sizeof(int)));
  for (int i = 0; i < 8; i++) values[i] = i;
  add_all_right<<<1, 1>>>(sum, values, 8);
  expect_one(sum, 28);
  check(cudaFreeHost(values));
}
CASE(right_managed_array) {
  int *values, *sum = zeros<int>(1);
  check(cudaMallocManaged(&values, 8 * sizeof(int)));
  for (int i = 0; i < 8; i++) values[i] = i;
  add_all_right<<<1, 1>>>(sum, values, 8);
  check(cudaDeviceSynchronize());
  expect_one(sum, 28);
  check(cudaFree(values));
}

__global__ void set_to(float* out, float value) { out[threadIdx.x] = value; }  // BUG memory: out
CASE(wrong_never_allocated) {
  float* out = nullptr;
  set_to<<<1, 32>>>(out, 1);
}

__constant__ float weights[5];
__device__ float results[32];
__global__ void convolve(const float* in) {
  float sum = 0;
  for (int k = 0; k <= 5; k++) sum += weights[k] * in[threadIdx.x + k];  // BUG memory: weights
  results[threadIdx.x] = sum;
}
CASE(wrong_constant_array_end) {
  const float values[5] = {1, 2, 3, 2, 1};
  check(cudaMemcpyToSymbol(weights, values, sizeof(values)));
  convolve<<<1, 32>>>(numbers<float>(37));
}

__global__ void convolve_right(const float* in) {
  float sum = 0;
  for (int k = 0; k < 5; k++) sum += weights[k] * in[threadIdx.x + k];
  results[threadIdx.x] = sum;
}
CASE(right_arrays_at_file_scope) {
  const float values[5] = {1, 2, 3, 2, 1};
  float found[32];
  check(cudaMemcpyToSymbol(weights, values, sizeof(values)));
  convolve_right<<<1, 32>>>(numbers<float>(36));
  check(cudaMemcpyFromSymbol(found, results, sizeof(found)));
  for (int i = 0; i < 32; i++) expect(found[i] == 9 * (i + 2));
}

struct Matrix {
  float* values;
  int rows, columns;
  __device__ float& at(int row, int column) { return values[row * columns + column]; }
};
__global__ void set_identity(Matrix matrix) {
  const int row = threadIdx.y, column = threadIdx.x;
  if (row < matrix.rows && column < matrix.columns) matrix.at(row, column) = row == column;
}
CASE(right_pointer_in_a_struct) {
  float* values = unwritten<float>(30);
  set_identity<<<1, dim3(8, 8)>>>(Matrix{values, 5, 6});
  expect_each(values, 30, [](int i) { return i / 6 == i % 6; });
}

// The report names the array of the host by its name in the call, and not that of another call in the line.
__global__ void number_all(int* out) {
  out[threadIdx.x] = threadIdx.x;  // BUG memory: second
}
CASE(wrong_second_of_three_arrays) {
  int *first, *second, *third;
  // clang-format off
  check(cudaMalloc(&first, 128)); cudaMalloc(&second, 64); check(cudaMalloc(&third, 128));
  // clang-format on
  number_all<<<1, 32>>>(first);
  number_all<<<1, 32>>>(third);
  number_all<<<1, 32>>>(second);
  check(cudaDeviceSynchronize());
}

__global__ void number_all_right(int* out) { out[threadIdx.x] = threadIdx.x; }
CASE(right_three_arrays_in_one_line) {
  int *first, *second, *third;
  // clang-format off
  check(cudaMalloc(&first, 128)); cudaMalloc(&second, 64); check(cudaMalloc(&third, 128));
  // clang-format on
  number_all_right<<<1, 32>>>(first);
  number_all_right<<<1, 16>>>(second);
  number_all_right<<<1, 32>>>(third);
  expect_each(third, 32, [](int i) { return i; });
  for (int* array : {first, second, third}) check(cudaFree(array));
}

int main(int words, char** word) { return run_cases(words, word); }
