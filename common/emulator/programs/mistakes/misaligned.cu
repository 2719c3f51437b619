// Alignment: accesses of 2, 4, 8 or 16 bytes at addresses that are not multiples of that size.
#include "case.h"

// ---- vectors of four

__global__ void scale(float* x, int n) {
  const int i = threadIdx.x;
  float4* fours = reinterpret_cast<float4*>(x);
  if (i >= n / 4) return;
  float4 four = fours[i];  // BUG memory: x
  four.x *= 2, four.y *= 2, four.z *= 2, four.w *= 2;
  fours[i] = four;
}
CASE(wrong_fours_from_the_second_element) { scale<<<1, 32>>>(numbers<float>(65) + 1, 64); }

// Vectors of four from the start; the last one to three elements are accessed one by one.
__global__ void scale_right(float* x, int n) {
  const int i = threadIdx.x;
  if (i < n / 4) {
    float4* four = reinterpret_cast<float4*>(x) + i;
    *four = make_float4(2 * four->x, 2 * four->y, 2 * four->z, 2 * four->w);
  }
  if (i < n % 4) x[n / 4 * 4 + i] *= 2;
}
CASE(right_fours_and_a_tail) {
  float* x = numbers<float>(67);
  scale_right<<<1, 32>>>(x, 67);
  expect_each(x, 67, [](int i) { return 2 * i; });
}

// The first elements are accessed one by one, until the address is a multiple of 16.
__global__ void scale_anywhere_right(float* x, int n) {
  const int before = int((16 - reinterpret_cast<size_t>(x) % 16) % 16 / sizeof(float)), i = threadIdx.x;
  const int fours = (n - before) / 4, after = before + 4 * fours;
  if (i < before) x[i] *= 2;
  if (i < n - after) x[after + i] *= 2;
  if (i >= fours) return;
  float4 four = reinterpret_cast<float4*>(x + before)[i];
  four.x *= 2, four.y *= 2, four.z *= 2, four.w *= 2;
  reinterpret_cast<float4*>(x + before)[i] = four;
}
CASE(right_fours_from_an_aligned_place) {
  float* x = numbers<float>(68);
  scale_anywhere_right<<<1, 32>>>(x + 1, 66);
  expect_each(x, 68, [](int i) { return i == 0 || i == 67 ? i : 2 * i; });
}

// With rows of 33 elements, the second row begins at an address that is not aligned for float4.
__global__ void zero_rows(float* out, int columns) {
  float* row = out + blockIdx.x * columns;
  float4* fours = reinterpret_cast<float4*>(row);
  fours[threadIdx.x] = make_float4(0, 0, 0, 0);  // BUG memory: out
}
CASE(wrong_rows_of_odd_length) { zero_rows<<<4, 8>>>(unwritten<float>(4 * 33), 33); }

__global__ void zero_rows_right(float* out, int pitch) {
  float4* fours = reinterpret_cast<float4*>(out + blockIdx.x * pitch);
  fours[threadIdx.x] = make_float4(0, 0, 0, 0);
}
CASE(right_rows_with_padding) {
  float* out = unwritten<float>(4 * 36);
  zero_rows_right<<<4, 9>>>(out, 36);
  expect_each(out, 4 * 36, [](int) { return 0; });
}

// ---- other widths

__global__ void norms(float* out, const float* points) {
  const float2 point = *reinterpret_cast<const float2*>(points + 3 * threadIdx.x);  // BUG memory: points
  out[threadIdx.x] = point.x * point.x + point.y * point.y;
}
CASE(wrong_pairs_from_triples) { norms<<<1, 16>>>(unwritten<float>(16), numbers<float>(48)); }

__global__ void norms_right(float* out, const float3* points) {
  const float3 point = points[threadIdx.x];  // a float3 needs only the alignment of a float
  out[threadIdx.x] = point.x + point.y + point.z;
}
CASE(right_triples) {
  float* out = unwritten<float>(16);
  norms_right<<<1, 16>>>(out, reinterpret_cast<const float3*>(numbers<float>(49) + 1));
  expect_each(out, 16, [](int i) { return 9 * i + 6; });
}

__global__ void read_header(int* out, const unsigned char* message) {
  *out = *reinterpret_cast<const int*>(message + 1);  // BUG memory: message
}
CASE(wrong_int_from_bytes) { read_header<<<1, 1>>>(unwritten<int>(1), zeros<unsigned char>(16)); }

__global__ void read_header_right(int* out, const unsigned char* message) {
  memcpy(out, message + 1, sizeof(int));
}
CASE(right_memcpy_from_bytes) {
  int* out = unwritten<int>(1);
  read_header_right<<<1, 1>>>(out, filled<unsigned char>(16, [](int i) { return i == 1 ? 7 : 0; }));
  expect_one(out, 7);
}

__global__ void read_header_by_bytes_right(int* out, const unsigned char* message) {
  *out = message[1] | message[2] << 8 | message[3] << 16 | message[4] << 24;
}
CASE(right_byte_by_byte) {
  int* out = unwritten<int>(1);
  read_header_by_bytes_right<<<1, 1>>>(out, filled<unsigned char>(16, [](int i) { return i == 1 ? 7 : 0; }));
  expect_one(out, 7);
}

// ---- shared memory

__global__ void sum(double* out, const double* in, int n) {
  extern __shared__ char memory[];
  char* is_negative = memory;
  double* values = reinterpret_cast<double*>(memory + n);
  is_negative[threadIdx.x] = in[threadIdx.x] < 0;
  values[threadIdx.x] = in[threadIdx.x];  // BUG memory: memory
  __syncthreads();
  double total = 0;
  for (int i = 0; i < n; i++) total += is_negative[i] ? 0 : values[i];
  if (threadIdx.x == 0) *out = total;
}
CASE(wrong_doubles_behind_bytes) { sum<<<1, 13, 13 * 9>>>(unwritten<double>(1), numbers<double>(13), 13); }

__global__ void sum_right(double* out, const double* in, int n) {
  extern __shared__ double values[];
  char* is_negative = reinterpret_cast<char*>(values + n);
  is_negative[threadIdx.x] = in[threadIdx.x] < 0;
  values[threadIdx.x] = in[threadIdx.x];
  __syncthreads();
  double total = 0;
  for (int i = 0; i < n; i++) total += is_negative[i] ? 0 : values[i];
  if (threadIdx.x == 0) *out = total;
}
CASE(right_bytes_behind_doubles) {
  double* out = unwritten<double>(1);
  sum_right<<<1, 13, 13 * 9>>>(out, numbers<double>(13), 13);
  expect_one(out, 78);
}

__global__ void pack(int2* out, const int* in) {
  __shared__ int pairs[2 * 32 + 1];
  pairs[1 + 2 * threadIdx.x] = in[threadIdx.x];
  pairs[2 + 2 * threadIdx.x] = in[threadIdx.x + 32];
  out[threadIdx.x] = *reinterpret_cast<int2*>(&pairs[1 + 2 * threadIdx.x]);  // BUG memory: pairs
}
CASE(wrong_pair_at_an_odd_element) { pack<<<1, 32>>>(unwritten<int2>(32), numbers<int>(64)); }

__global__ void pack_right(int2* out, const int* in) {
  __shared__ alignas(8) int pairs[2 * 32];
  pairs[2 * threadIdx.x] = in[threadIdx.x];
  pairs[2 * threadIdx.x + 1] = in[threadIdx.x + 32];
  out[threadIdx.x] = *reinterpret_cast<int2*>(&pairs[2 * threadIdx.x]);
}
CASE(right_pair_at_an_even_element) {
  int2* out = unwritten<int2>(32);
  pack_right<<<1, 32>>>(out, numbers<int>(64));
  expect_each(reinterpret_cast<int*>(out), 64, [](int i) { return i / 2 + i % 2 * 32; });
}

// ---- variables, at addresses that the compiler knows

__device__ int counter;
__global__ void count_beside() {
  *reinterpret_cast<int*>(reinterpret_cast<char*>(&counter) + 1) = 42;  // BUG memory: counter
}
CASE(wrong_one_byte_into_a_variable) { count_beside<<<1, 1>>>(); }

// The members of a packed structure may have any address.
struct __attribute__((packed)) Message {
  char kind;
  int number;
};
__device__ Message message;
__global__ void write_message() { message.number = 42; }
__global__ void read_message(int* out) { *out = message.number; }
CASE(right_member_of_a_packed_structure) {
  int* out = unwritten<int>(1);
  write_message<<<1, 1>>>();
  read_message<<<1, 1>>>(out);
  expect_one(out, 42);
}

int main(int words, char** word) { return run_cases(words, word); }
