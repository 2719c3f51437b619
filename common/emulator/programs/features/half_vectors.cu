// 16-bit numbers: half and half2 (cuda_fp16.h), four rounding modes, arithmetic, comparisons, maths, atomics
// Support: yes
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <cstring>

constexpr int kPairs = 96;

// z = a * x + y, two numbers in each thread.
__global__ void axpy(__half2* z, const __half2* x, const __half2* y, float a) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < kPairs) z[i] = __hfma2(__float2half2_rn(a), x[i], y[i]);
}

__global__ void sum_kernel(__half* sum, const __half2* x) {
  const __half2 pair = x[threadIdx.x];
  __half mine = __hadd(__low2half(pair), __high2half(pair));
  for (int offset = 16; offset; offset /= 2) mine += __shfl_down_sync(0xffffffff, mine, offset);
  if (threadIdx.x % 32 == 0) atomicAdd(sum, mine);
}

struct Facts {
  unsigned short up, down, zero, nearest, subnormal, too_large, largest, root, logarithm;
  unsigned mask;
  int whole, is_less, is_nan, all_greater;
  float least, product;
};

__global__ void functions(Facts* facts, float third, float two) {
  facts->up = __half_as_ushort(__float2half_ru(third));
  facts->down = __half_as_ushort(__float2half_rd(third));
  facts->zero = __half_as_ushort(__float2half_rz(-third));
  facts->nearest = __half_as_ushort(__float2half(third));
  facts->subnormal = __half_as_ushort(__float2half(1e-7f));
  facts->too_large = __half_as_ushort(__float2half(65520.0f));
  facts->largest = __half_as_ushort(__float2half_rz(1e6f));
  facts->root = __half_as_ushort(hsqrt(__float2half(two)));
  facts->logarithm = __half_as_ushort(hlog(__float2half(two)));
  const __half nan = __ushort_as_half(0x7e00), one = __int2half_rn(1);
  facts->mask = __hgt2_mask(__halves2half2(one, nan), __float2half2_rn(0.5f));
  facts->whole = __half2int_rd(__float2half(-two - third));
  facts->is_less = __hlt(__float2half(third), one);
  facts->is_nan = __hisnan(nan) && __hisnan(__hmax_nan(one, nan)) && !__hisnan(__hmax(one, nan));
  facts->all_greater = __hbgt2(__float2half2_rn(two), __float2half2_rn(third));
  facts->least = __half2float(__hmin(one, __float2half(two)));
  const half a = __float2half(third);
  facts->product = a * half(two) + one;
}

int expect(const char* what, double got, double expected) {
  if (got == expected) return 0;
  return std::fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected), 1;
}

int main() {
  __half2 *x, *y, *z;
  __half* sum;
  Facts* facts;
  cudaMallocManaged(&x, kPairs * sizeof(__half2));
  cudaMallocManaged(&y, kPairs * sizeof(__half2));
  cudaMallocManaged(&z, kPairs * sizeof(__half2));
  cudaMallocManaged(&sum, sizeof(__half));
  cudaMallocManaged(&facts, sizeof(Facts));
  for (int i = 0; i < kPairs; i++) {
    x[i] = __floats2half2_rn(i, -i);
    y[i] = make_half2(__float2half(0.5f), __float2half(1.0f));
  }
  *sum = __float2half(0.0f);
  axpy<<<1, 128>>>(z, x, y, 2.0f);
  sum_kernel<<<1, kPairs>>>(sum, y);
  functions<<<1, 1>>>(facts, 1 / 3.0f, 2.0f);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < kPairs; i++) {
    wrong |= expect("axpy, x", __low2float(z[i]), 2 * i + 0.5);
    wrong |= expect("axpy, y", __high2float(z[i]), 1 - 2 * i);
  }
  wrong |= expect("sum", __half2float(*sum), 1.5 * kPairs);
  wrong |= expect("1/3 rounded up", facts->up, 0x3556);
  wrong |= expect("1/3 rounded down", facts->down, 0x3555);
  wrong |= expect("-1/3 rounded to zero", facts->zero, 0xb555);
  wrong |= expect("1/3 rounded to nearest", facts->nearest, 0x3555);
  wrong |= expect("1e-7 is subnormal", facts->subnormal, 2);
  wrong |= expect("65520 is infinite", facts->too_large, 0x7c00);
  wrong |= expect("1e6 rounded to zero", facts->largest, 0x7bff);
  wrong |= expect("the root of 2", facts->root, 0x3da8);
  wrong |= expect("the logarithm of 2", facts->logarithm, 0x398c);
  wrong |= expect("the mask of pairs that are greater", facts->mask, 0xffff);
  wrong |= expect("-2.33 rounded down", facts->whole, -3);
  wrong |= expect("1/3 < 1", facts->is_less, 1);
  wrong |= expect("NaN", facts->is_nan, 1);
  wrong |= expect("both are greater", facts->all_greater, 1);
  wrong |= expect("the lesser one", facts->least, 1);
  wrong |= expect("a * 2 + 1", facts->product, 1.666015625);
  for (void* memory : {(void*)x, (void*)y, (void*)z, (void*)sum, (void*)facts}) cudaFree(memory);
  return wrong;
}
