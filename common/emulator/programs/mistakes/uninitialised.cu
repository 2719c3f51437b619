// Uninitialised memory: kernels or the host read memory that was never written. Shared memory is
// uninitialised at the beginning of each block.
#include "case.h"

// ---- global memory

__global__ void row_sums(float* sums, const float* in, int columns) {
  for (int i = 0; i < columns; i++)
    sums[threadIdx.x] += in[threadIdx.x * columns + i];  // BUG initialisation: sums
}
CASE(wrong_sums_not_zeroed) { row_sums<<<1, 16>>>(unwritten<float>(16), numbers<float>(16 * 8), 8); }

__global__ void row_sums_right(float* sums, const float* in, int columns) {
  for (int i = 0; i < columns; i++) sums[threadIdx.x] += in[threadIdx.x * columns + i];
}
CASE(right_sums_zeroed_by_memset) {
  float* sums = unwritten<float>(16);
  check(cudaMemset(sums, 0, 16 * sizeof(float)));
  row_sums_right<<<1, 16>>>(sums, numbers<float>(16 * 8), 8);
  expect_one(sums, 28);
}
CASE(right_sums_zeroed_in_the_stream) {
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  float *sums = unwritten<float>(16), *in = numbers<float>(16 * 8);
  check(cudaMemsetAsync(sums, 0, 16 * sizeof(float), stream));
  row_sums_right<<<1, 16, 0, stream>>>(sums, in, 8);
  check(cudaStreamSynchronize(stream));
  expect_one(sums, 28);
  check(cudaStreamDestroy(stream));
}

__global__ void histogram(int* bins, const int* values) {
  atomicAdd(&bins[values[threadIdx.x] % 8], 1);  // BUG initialisation: bins
}
CASE(wrong_bins_not_zeroed) { histogram<<<1, 64>>>(unwritten<int>(8), numbers<int>(64)); }

__global__ void zero(int* bins) { bins[threadIdx.x] = 0; }
__global__ void histogram_right(int* bins, const int* values) {
  atomicAdd(&bins[values[threadIdx.x] % 8], 1);
}
CASE(right_bins_zeroed_by_a_kernel) {
  int* bins = unwritten<int>(8);
  zero<<<1, 8>>>(bins);
  histogram_right<<<1, 64>>>(bins, numbers<int>(64));
  expect_each(bins, 8, [](int) { return 8; });
}

// The host copied sixteen bytes instead of sixteen numbers.
__global__ void scale(float* out, const float* in) {
  const float value = in[threadIdx.x];  // BUG initialisation: in
  out[threadIdx.x] = 2 * value;
}
CASE(wrong_copied_elements_for_bytes) {
  const float host[16] = {};
  float* in = unwritten<float>(16);
  check(cudaMemcpy(in, host, 16, cudaMemcpyHostToDevice));
  scale<<<1, 16>>>(unwritten<float>(16), in);
}

// The first kernel leaves out the tail of a row, but the second kernel reads the whole row.
__global__ void gates(float* z, int columns) {
  for (int i = threadIdx.x; i + 4 <= columns; i += 32) z[blockIdx.x * columns + i] = float(i);
}
__global__ void cells(float* cell, const float* z, int columns) {
  for (int i = threadIdx.x; i < columns; i += 32) {
    const float gate = z[blockIdx.x * columns + i];  // BUG initialisation: z
    cell[blockIdx.x * columns + i] = gate * gate;
  }
}
CASE(wrong_tail_left_out_by_another_kernel) {
  float *z = unwritten<float>(4 * 70), *cell = unwritten<float>(4 * 70);
  gates<<<4, 32>>>(z, 70);
  cells<<<4, 32>>>(cell, z, 70);
}

__global__ void gates_right(float* z, int columns) {
  for (int i = threadIdx.x; i < columns; i += 32) z[blockIdx.x * columns + i] = float(i);
}
__global__ void cells_right(float* cell, const float* z, int columns) {
  for (int i = threadIdx.x; i < columns; i += 32) {
    const float gate = z[blockIdx.x * columns + i];
    cell[blockIdx.x * columns + i] = gate * gate;
  }
}
CASE(right_tail_written) {
  float *z = unwritten<float>(4 * 70), *cell = unwritten<float>(4 * 70);
  gates_right<<<4, 32>>>(z, 70);
  cells_right<<<4, 32>>>(cell, z, 70);
  expect_each(cell, 4 * 70, [](int i) { return (i % 70) * (i % 70); });
}

// The array is larger than needed, but only the elements that were written are read.
__global__ void keep_even(int* kept, int* count, const int* in) {
  if (in[threadIdx.x] % 2 == 0) kept[atomicAdd(count, 1)] = in[threadIdx.x];
}
__global__ void add_kept(int* sum, const int* kept, const int* count) {
  for (int i = 0; i < *count; i++) *sum += kept[i];
}
CASE(right_room_to_spare) {
  int *kept = unwritten<int>(64), *count = zeros<int>(1), *sum = zeros<int>(1);
  keep_even<<<1, 64>>>(kept, count, numbers<int>(64));
  add_kept<<<1, 1>>>(sum, kept, count);
  expect_one(sum, 31 * 32);
}

// Written in groups of four, byte by byte, and by the host; read one by one.
__global__ void write_fours(float4* out) { out[threadIdx.x] = make_float4(1, 2, 3, 4); }
__global__ void write_bytes(unsigned char* out) { out[threadIdx.x] = threadIdx.x % 4 == 0; }
__global__ void add(float* out, const float* floats, const int* ints, const int* managed, const int* pinned) {
  const int i = threadIdx.x;
  out[i] = floats[i] + ints[i] + managed[i] + pinned[i];
}
CASE(right_written_in_other_ways) {
  float *out = unwritten<float>(32), *floats = unwritten<float>(32);
  int *ints = unwritten<int>(32), *managed, *pinned;
  check(cudaMallocManaged(&managed, 32 * sizeof(int)));
  check(cudaMallocHost(&pinned, 32 * sizeof(int)));
  for (int i = 0; i < 32; i++) managed[i] = i, pinned[i] = -i;
  write_fours<<<1, 8>>>(reinterpret_cast<float4*>(floats));
  write_bytes<<<1, 128>>>(reinterpret_cast<unsigned char*>(ints));
  add<<<1, 32>>>(out, floats, ints, managed, pinned);
  expect_each(out, 32, [](int i) { return i % 4 + 2; });
  check(cudaFree(managed));
  check(cudaFreeHost(pinned));
}

// Three bytes of each structure are padding: never written, but copied with the rest.
struct Guess {
  float probability;
  char label;
};
__global__ void guess(Guess* out) {
  out[threadIdx.x].probability = 0.5f;
  out[threadIdx.x].label = 'a';
}
__global__ void sort_guesses(Guess* out, const Guess* in) { out[31 - threadIdx.x] = in[threadIdx.x]; }
CASE(right_padding_of_structs) {
  Guess *guesses = unwritten<Guess>(32), *sorted = unwritten<Guess>(32);
  guess<<<1, 32>>>(guesses);
  sort_guesses<<<1, 32>>>(sorted, guesses);
}

// Only some bytes of each element are written.
__global__ void write_low_bytes(char* out) { out[4 * threadIdx.x] = 1; }
__global__ void negate(int* out, const int* in) {
  const int value = in[threadIdx.x];  // BUG initialisation: in
  out[threadIdx.x] = -value;
}
CASE(wrong_one_byte_of_each_element) {
  int* in = unwritten<int>(32);
  write_low_bytes<<<1, 32>>>(reinterpret_cast<char*>(in));
  negate<<<1, 32>>>(unwritten<int>(32), in);
}

__global__ void increment(int* total) {
  *total += 1;  // BUG initialisation: total
}
CASE(wrong_memset_of_three_bytes) {
  int* total = unwritten<int>(1);
  check(cudaMemset(total, 0, 3));
  increment<<<1, 1>>>(total);
}

__global__ void load_bytes(int* out, const char* in) {
  __shared__ int words[32];
  if (threadIdx.x % 4 != 3) reinterpret_cast<char*>(words)[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  if (threadIdx.x < 32) {
    const int word = words[threadIdx.x];  // BUG initialisation: words
    out[threadIdx.x] = word;
  }
}
CASE(wrong_three_bytes_in_shared_memory) { load_bytes<<<1, 128>>>(unwritten<int>(32), numbers<char>(128)); }

__global__ void write_each_byte(char* out) { out[threadIdx.x] = threadIdx.x % 4 == 0; }
__global__ void negate_right(int* out, const int* in) { out[threadIdx.x] = -in[threadIdx.x]; }
CASE(right_all_bytes_of_each_element) {
  int *in = unwritten<int>(32), *out = unwritten<int>(32);
  write_each_byte<<<1, 128>>>(reinterpret_cast<char*>(in));
  negate_right<<<1, 32>>>(out, in);
  expect_each(out, 32, [](int) { return -1; });
}

// The fourth byte of each colour is padding, also where all four are read at once.
struct alignas(4) Colour {
  unsigned char red, green, blue;
};
__global__ void paint(Colour* out) {
  out[threadIdx.x].red = 1;
  out[threadIdx.x].green = 2;
  out[threadIdx.x].blue = 3;
}
__global__ void mirror(Colour* out, const Colour* in) {
  __shared__ Colour row[32];
  row[threadIdx.x] = in[31 - threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = row[threadIdx.x];
}
CASE(right_padding_of_aligned_structs) {
  Colour *in = unwritten<Colour>(32), *out = unwritten<Colour>(32);
  paint<<<1, 32>>>(in);
  mirror<<<1, 32>>>(out, in);
}

// An object's first word is the address of its table of virtual functions, which its constructor writes.
struct Shape {
  __device__ virtual float area() const = 0;
  __device__ virtual ~Shape() {}
};
struct Square : Shape {
  float side;
  __device__ explicit Square(float side_) : side(side_) {}
  __device__ float area() const override { return side * side; }
};
__global__ void make_shapes(Shape** shapes) { shapes[threadIdx.x] = new Square(threadIdx.x); }
__global__ void add_areas(float* sum, Shape** shapes) { atomicAdd(sum, shapes[threadIdx.x]->area()); }
__global__ void delete_shapes(Shape** shapes) { delete shapes[threadIdx.x]; }
CASE(right_objects_with_virtual_functions) {
  Shape** shapes = unwritten<Shape*>(4);
  float* sum = zeros<float>(1);
  make_shapes<<<1, 4>>>(shapes);
  add_areas<<<1, 4>>>(sum, shapes);
  delete_shapes<<<1, 4>>>(shapes);
  expect_one(sum, 0 + 1 + 4 + 9);
}

__device__ int visits;  // zero from the start, like every variable at file scope
__global__ void visit(int* out) { out[threadIdx.x] = atomicAdd(&visits, 1); }
CASE(right_variable_at_file_scope) { visit<<<1, 32>>>(unwritten<int>(32)); }

// ---- results that the host reads

__global__ void fill_first(float* out, int n) {
  if (threadIdx.x < n) out[threadIdx.x] = 1;
}
CASE(wrong_result_never_written) {
  float host[64], *out = unwritten<float>(64);
  fill_first<<<1, 64>>>(out, 0);
  check(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));  // BUG initialisation: out
}
CASE(wrong_half_of_the_result_never_written) {
  float host[64], *out = unwritten<float>(64);
  fill_first<<<1, 64>>>(out, 32);
  check(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));  // BUG initialisation: out
}
CASE(wrong_managed_result_never_written) {
  float* out;
  check(cudaMallocManaged(&out, 64 * sizeof(float)));
  fill_first<<<1, 64>>>(out, 0);
  check(cudaDeviceSynchronize());
  if (out[63] == 1) std::puts("written");  // BUG initialisation: out
  check(cudaFree(out));
}

CASE(right_part_of_the_result_is_read) {
  float host[32], *out = unwritten<float>(64);
  fill_first<<<1, 64>>>(out, 32);
  check(cudaMemcpy(host, out, sizeof(host), cudaMemcpyDeviceToHost));
  expect(host[31] == 1);
}
CASE(right_managed_result) {
  float *out, *filled_by_the_host;
  check(cudaMallocManaged(&out, 64 * sizeof(float)));
  check(cudaMallocManaged(&filled_by_the_host, 64 * sizeof(float)));
  fill_first<<<1, 64>>>(out, 64);
  fill_first<<<1, 64>>>(filled_by_the_host, 0);
  check(cudaDeviceSynchronize());
  for (int i = 0; i < 64; i++) filled_by_the_host[i] = 2;
  expect(out[63] + filled_by_the_host[63] == 3);
  check(cudaFree(out));
  check(cudaFree(filled_by_the_host));
}

// ---- shared memory

__global__ void block_sums(float* sums, const float* in, int n) {
  __shared__ float partial[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  if (i < n) partial[t] = in[i];
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];  // BUG initialisation: partial
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}
CASE(wrong_tail_of_the_last_block) { block_sums<<<2, 64>>>(unwritten<float>(2), numbers<float>(100), 100); }

__global__ void block_sums_right(float* sums, const float* in, int n) {
  __shared__ float partial[64];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  partial[t] = i < n ? in[i] : 0;
  __syncthreads();
  for (int half = 32; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}
CASE(right_tail_is_zero) {
  float* sums = unwritten<float>(2);
  block_sums_right<<<2, 64>>>(sums, numbers<float>(100), 100);
  expect_one(sums + 1, 36 * 64 + 35 * 18);
}

__global__ void count_positive(int* counts, const int* in) {
  __shared__ int count;
  if (in[blockIdx.x * 32 + threadIdx.x] > 0) atomicAdd(&count, 1);  // BUG initialisation: count
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}
CASE(wrong_shared_counter_not_zeroed) { count_positive<<<2, 32>>>(unwritten<int>(2), numbers<int>(64)); }

__global__ void count_positive_right(int* counts, const int* in) {
  __shared__ int count;
  if (threadIdx.x == 0) count = 0;
  __syncthreads();
  if (in[blockIdx.x * 32 + threadIdx.x] > 0) atomicAdd(&count, 1);
  __syncthreads();
  if (threadIdx.x == 0) counts[blockIdx.x] = count;
}
CASE(right_shared_counter) {
  int* counts = unwritten<int>(2);
  count_positive_right<<<2, 32>>>(counts, numbers<int>(64));
  expect_each(counts, 2, [](int i) { return 31 + i; });
}

__global__ void look_up(float* out, const float* host_table) {
  __shared__ float table[32];
  if (blockIdx.x == 0) table[threadIdx.x] = host_table[threadIdx.x];
  __syncthreads();
  const float value = table[(threadIdx.x * 7) % 32];  // BUG initialisation: table
  out[blockIdx.x * 32 + threadIdx.x] = value;
}
CASE(wrong_only_the_first_block_loads) { look_up<<<3, 32>>>(unwritten<float>(96), numbers<float>(32)); }

__global__ void smooth(float* out, const float* in, int n) {
  __shared__ float tile[34];
  const int t = threadIdx.x, i = blockIdx.x * 32 + t;
  tile[t + 1] = in[i];
  if (t == 0 && i > 0) tile[0] = in[i - 1];
  if (t == 31 && i + 1 < n) tile[33] = in[i + 1];
  __syncthreads();
  float sum = tile[t] + tile[t + 1];  // BUG initialisation: tile
  if (i + 1 < n) sum += tile[t + 2];
  out[i] = sum / 3;
}
CASE(wrong_halo_at_the_edge) { smooth<<<2, 32>>>(unwritten<float>(64), numbers<float>(64), 64); }

__global__ void smooth_right(float* out, const float* in, int n) {
  __shared__ float tile[34];
  const int t = threadIdx.x, i = blockIdx.x * 32 + t;
  tile[t + 1] = in[i];
  if (t == 0 && i > 0) tile[0] = in[i - 1];
  if (t == 31 && i + 1 < n) tile[33] = in[i + 1];
  __syncthreads();
  const float left = i > 0 ? tile[t] : 0, right = i + 1 < n ? tile[t + 2] : 0;
  out[i] = left + tile[t + 1] + right;
}
CASE(right_edge_is_not_read) {
  float* out = unwritten<float>(64);
  smooth_right<<<2, 32>>>(out, numbers<float>(64), 64);
  expect_each(out, 63, [](int i) { return i ? 3 * i : 1; });
}

int main(int words, char** word) { return run_cases(words, word); }
