// 16-bit numbers: bfloat16 (cuda_bf16.h), with sums in float, conversions of pairs, atomicAdd and shuffles
// Support: yes
#include <cuda_bf16.h>

#include <cmath>
#include <cstdio>

constexpr int kColumns = 80;

// One warp for each row: the mean of the row, and the row divided by its largest absolute value.
__global__ void rows_kernel(__nv_bfloat16* mean, __nv_bfloat162* scaled, __nv_bfloat162* total,
                            const __nv_bfloat162* x) {
  const __nv_bfloat162* row = x + blockIdx.x * kColumns / 2;
  float sum = 0;
  __nv_bfloat162 most = __float2bfloat162_rn(0.0f);
  for (int i = threadIdx.x; i < kColumns / 2; i += 32) {
    const float2 pair = __bfloat1622float2(row[i]);
    sum += pair.x + pair.y;
    most = __hmax2(most, __habs2(row[i]));
  }
  for (int offset = 16; offset; offset /= 2) {
    sum += __shfl_xor_sync(0xffffffff, sum, offset);
    most = __hmax2(most, __shfl_xor_sync(0xffffffff, most, offset));
  }
  const nv_bfloat16 largest = __hmax(__low2bfloat16(most), __high2bfloat16(most));
  for (int i = threadIdx.x; i < kColumns / 2; i += 32)
    scaled[blockIdx.x * kColumns / 2 + i] = row[i] / __bfloat162bfloat162(largest);
  if (threadIdx.x) return;
  mean[blockIdx.x] = __float2bfloat16_rn(sum / kColumns);
  atomicAdd(total, __floats2bfloat162_rn(1.0f, sum));
}

// The bfloat16 next to a number: ties go to the even one.
float rounded(float value) {
  int exponent;
  std::frexp(value, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(value, 8 - exponent)), exponent - 8);
}

int expect(const char* what, int row, int i, float got, float expected) {
  if (got == expected) return 0;
  return std::fprintf(stderr, "%s [%d, %d]: got %g, expected %g\n", what, row, i, got, expected), 1;
}

int main() {
  constexpr int kRows = 3;
  __nv_bfloat16 *x, *mean, *scaled;
  __nv_bfloat162* total;
  cudaMallocManaged(&x, kRows * kColumns * sizeof(__nv_bfloat16));
  cudaMallocManaged(&scaled, kRows * kColumns * sizeof(__nv_bfloat16));
  cudaMallocManaged(&mean, kRows * sizeof(__nv_bfloat16));
  cudaMallocManaged(&total, sizeof(__nv_bfloat162));
  for (int row = 0; row < kRows; row++)
    for (int i = 0; i < kColumns; i++) x[row * kColumns + i] = __float2bfloat16(i - 7 * row);
  *total = __nv_bfloat162(0.0f, 0.0f);
  rows_kernel<<<kRows, 32>>>(mean, (__nv_bfloat162*)scaled, total, (const __nv_bfloat162*)x);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int row = 0; row < kRows; row++) {
    const float largest = 79 - 7 * row;
    wrong |= expect("mean", row, 0, __bfloat162float(mean[row]), rounded(39.5f - 7 * row));
    for (int i = 0; i < kColumns; i++)
      wrong |= expect("scaled", row, i, float(scaled[row * kColumns + i]),
                      i == 7 * row ? 0 : rounded((i - 7 * row) / largest));
  }
  // 3160, 2600 and 2040 are rounded to multiples of 16, and their sum to one of 32.
  wrong |= expect("total", 0, 0, __low2float(*total), 3);
  wrong |= std::fabs(__high2float(*total) - 7800) > 64;
  wrong |= expect("a tie", 0, 0, float(__float2bfloat16(257.0f)), 256);
  wrong |= expect("another tie", 0, 0, float(__float2bfloat16(259.0f)), 260);
  for (void* memory : {(void*)x, (void*)scaled, (void*)mean, (void*)total}) cudaFree(memory);
  return wrong;
}
