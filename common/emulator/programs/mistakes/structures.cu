// Whole structures: vectors that are created, returned or copied in many ways, and user-defined structures.
#include "case.h"

struct Complex {
  float re, im;
};
__device__ Complex product(Complex a, Complex b) {
  return {a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re};
}
__device__ Complex power(Complex a, int n) { return n == 1 ? a : product(a, power(a, n - 1)); }

__device__ float2 twice(float2 v) { return {2 * v.x, 2 * v.y}; }
__device__ float2 operator+(const float2& a, const float2& b) { return make_float2(a.x + b.x, a.y + b.y); }
union Parts {
  float2 whole;
  float part[2];
};

// ---- each line stores 8 bytes at once

__global__ void store_values(float* x, const float2* from) {
  float2* to = reinterpret_cast<float2*>(x);
  const int i = threadIdx.x;
  if (i == 0) to[0] = from[0];              // BUG memory: x
  if (i == 1) to[1] = make_float2(1, 2);    // BUG memory: x
  if (i == 2) to[2] = make_float2(0, 0);    // BUG memory: x
  if (i == 3) to[3] = {1, 2};               // BUG memory: x
  if (i == 4) to[4] = float2{1, float(i)};  // BUG memory: x
}
CASE(wrong_pairs_of_values) {
  store_values<<<1, 5>>>(numbers<float>(11) + 1, reinterpret_cast<const float2*>(numbers<float>(2)));
}

__global__ void store_values_right(float2* to, const float2* from) {
  const int i = threadIdx.x;
  if (i == 0) to[0] = from[0];
  if (i == 1) to[1] = make_float2(1, 2);
  if (i == 2) to[2] = make_float2(0, 0);
  if (i == 3) to[3] = {1};
  if (i == 4) to[4] = float2{1, float(i)};
}
CASE(right_pairs_of_values) {
  float2* to = unwritten<float2>(5);
  store_values_right<<<1, 5>>>(to, reinterpret_cast<const float2*>(numbers<float>(2)));
  const float expected[] = {0, 1, 1, 2, 0, 0, 1, 0, 1, 4};
  expect_each(reinterpret_cast<const float*>(to), 10, [&](int i) { return expected[i]; });
}

__global__ void store_results(float* x, const float2* from) {
  float2* to = reinterpret_cast<float2*>(x);
  const int i = threadIdx.x;
  __shared__ float2 tile[4];
  tile[i] = from[0];
  if (i == 0) to[0] = twice(from[0]);     // BUG memory: x
  if (i == 1) to[1] = from[0] + tile[i];  // BUG memory: x
  if (i == 2) to[2] = tile[i];            // BUG memory: x
  if (i == 3) {
    Parts parts;
    parts.whole = from[0];
    parts.part[1] = 7;
    to[3] = parts.whole;  // BUG memory: x
  }
}
CASE(wrong_pairs_of_results) {
  store_results<<<1, 4>>>(numbers<float>(9) + 1, reinterpret_cast<const float2*>(numbers<float>(2)));
}

__global__ void store_results_right(float2* to, const float2* from) {
  const int i = threadIdx.x;
  __shared__ float2 tile[4];
  tile[i] = from[0];
  if (i == 0) to[0] = twice(from[0]);
  if (i == 1) to[1] = from[0] + tile[i];
  if (i == 2) to[2] = tile[i];
  if (i == 3) {
    Parts parts = {from[0]}, copy;
    parts.part[1] = 7;
    copy = parts;
    to[3] = copy.whole;
  }
}
CASE(right_pairs_of_results) {
  float2* to = unwritten<float2>(4);
  store_results_right<<<1, 4>>>(to, reinterpret_cast<const float2*>(numbers<float>(2)));
  const float expected[] = {0, 2, 0, 2, 0, 1, 0, 7};
  expect_each(reinterpret_cast<const float*>(to), 8, [&](int i) { return expected[i]; });
}

__global__ void load(float* out, const float* x) {
  const float2* from = reinterpret_cast<const float2*>(x);
  const int i = threadIdx.x;
  if (i == 0) {
    const float2 v = from[0];  // BUG memory: x
    out[i] = v.x + v.y;
  }
  if (i == 1) out[i] = twice(from[1]).x;  // BUG memory: x
  if (i == 2) {
    Parts parts;
    parts.whole = from[2];  // BUG memory: x
    out[i] = parts.part[1];
  }
  if (i == 3) out[i] = from[3].y;  // an access of four bytes, which is correct
}
CASE(wrong_pairs_loaded) { load<<<1, 4>>>(zeros<float>(4), numbers<float>(9) + 1); }

__global__ void load_right(float* out, const float4* x) {
  const int i = threadIdx.x;
  float4 v;
  v.x = v.y = v.z = v.w = 5;
  if (i == 0) v = x[i];
  if (i == 1) v = {x[i].w, x[i].z};
  const float a[4] = {v.x, v.y, v.z, v.w};
  out[i] = a[i] + a[i + 1];
}
CASE(right_fours_loaded) {
  float* out = unwritten<float>(3);
  load_right<<<1, 3>>>(out, reinterpret_cast<const float4*>(numbers<float>(12)));
  const float expected[] = {1, 6, 10};
  expect_each(out, 3, [&](int i) { return expected[i]; });
}

// ---- user-defined structures as arguments and results

__global__ void multiply(Complex* out, const Complex* a, const Complex* b) {
  const int i = threadIdx.x;
  out[i] = product(a[0], b[i]);  // BUG memory: b
}
CASE(wrong_structure_read) {
  const float *a = zeros<float>(2), *b = zeros<float>(62);
  multiply<<<1, 32>>>(unwritten<Complex>(32), reinterpret_cast<const Complex*>(a),
                      reinterpret_cast<const Complex*>(b));
}

__global__ void powers(Complex* out, const Complex* a) {
  const int i = threadIdx.x;
  const Complex result = power(*a, i + 1);
  out[i] = result;  // BUG memory: out
}
CASE(wrong_structure_written) {
  powers<<<1, 5>>>(unwritten<Complex>(4), reinterpret_cast<const Complex*>(zeros<float>(2)));
}

__global__ void squares(Complex* out, const Complex* a) {
  const int i = threadIdx.x;
  out[i] = product(a[i], a[i]);
}
__global__ void add_up(float* sum, const Complex* x, int n) {
  for (int i = 0; i < n; i++) *sum += x[i].re + x[i].im;
}
CASE(right_structures_are_written) {
  Complex* x = unwritten<Complex>(32);
  squares<<<1, 32>>>(x, reinterpret_cast<const Complex*>(numbers<float>(64)));
  float* sum = zeros<float>(1);
  add_up<<<1, 1>>>(sum, x, 4);
  expect_one(sum, -1 + 0 - 5 + 12 - 9 + 40 - 13 + 84);
}

__global__ void powers_right(Complex* out, const Complex* a) {
  const int i = threadIdx.x;
  out[i] = power(*a, i + 1);
}
CASE(right_recursive_structures) {
  Complex* out = unwritten<Complex>(4);
  powers_right<<<1, 4>>>(out, reinterpret_cast<const Complex*>(numbers<float>(2)));
  const float expected[] = {0, 1, -1, 0, 0, -1, 1, 0};  // i, -1, -i, 1
  expect_each(reinterpret_cast<const float*>(out), 8, [&](int i) { return expected[i]; });
}

int main(int words, char** word) { return run_cases(words, word); }
