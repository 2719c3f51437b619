// 8-bit numbers: E4M3 and E5M2 (cuda_fp8.h, and cvt and mma in PTX)
// Support: yes
#include <cuda_fp8.h>

#include <cstdint>
#include <cstdio>

constexpr int kInputs = 12;

struct Converted {
  uint8_t e4m3, e5m2, unsaturated_e4m3, unsaturated_e5m2;
  float from_e4m3, from_e5m2;
};

__global__ void convert(Converted* out, const float* in) {
  const int i = threadIdx.x;
  const __nv_fp8_e4m3 a(in[i]);
  const __nv_fp8_e5m2 b(in[i]);
  out[i].e4m3 = a.__x;
  out[i].e5m2 = b.__x;
  out[i].unsaturated_e4m3 = __nv_cvt_float_to_fp8(in[i], __NV_NOSAT, __NV_E4M3);
  out[i].unsaturated_e5m2 = __nv_cvt_float_to_fp8(in[i], __NV_NOSAT, __NV_E5M2);
  out[i].from_e4m3 = float(a);
  out[i].from_e5m2 = __half2float(__half(__nv_cvt_fp8_to_halfraw(b.__x, __NV_E5M2)));
}

// Four numbers, quantised to one word and multiplied after they are read back.
__global__ void scale(float4* out, uint32_t* words, const float4* in, float factor) {
  const int i = threadIdx.x;
  const __nv_fp8x4_e4m3 packed(in[i]);
  words[i] = packed.__x;
  const float4 four = float4(packed);
  out[i] = make_float4(factor * four.x, factor * four.y, factor * four.z, factor * four.w);
  const __nv_fp8x2_e5m2 pair(make_float2(in[i].x, in[i].y));
  const float2 back = __half22float2(__half2(pair));
  out[i].x += back.x - in[i].x;
}

// c = a * b of 16 x 8 numbers by one warp, where a is 1.5 in each place, and b has 0.25 times its column.
__global__ void multiply(float* c) {
  const int row = threadIdx.x / 4, column = threadIdx.x % 4;
  uint16_t a, b;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %1;" : "=h"(a) : "f"(1.5f));
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %1;" : "=h"(b) : "f"(0.25f * row));
  float sum[4] = {};
  asm volatile(
      "mma.sync.aligned.m16n8k32.row.col.f32.e4m3.e5m2.f32 "
      "{%0, %1, %2, %3}, {%4, %4, %4, %4}, {%5, %5}, {%0, %1, %2, %3};"
      : "+f"(sum[0]), "+f"(sum[1]), "+f"(sum[2]), "+f"(sum[3])
      : "r"(a * 0x10001u), "r"(b * 0x10001u));
  for (int i = 0; i < 4; i++) c[(row + i / 2 * 8) * 8 + 2 * column + i % 2] = sum[i];
}

int expect(const char* what, int i, double got, double expected) {
  if (got == expected) return 0;
  return std::fprintf(stderr, "%s %d: got %g, expected %g\n", what, i, got, expected), 1;
}

int main() {
  // Ties go to the even number; 464 is one between 448, the largest of E4M3, and a number that there is none
  // for.
  const float inputs[kInputs] = {0.0f, 1.0f, -1.5f, 1.0625f,      1.1875f, 448,
                                 464,  465,  1e6f,  0.001953125f, 1e-5f,   -300};
  const Converted expected[kInputs] = {
      {0x00, 0x00, 0x00, 0x00, 0, 0},
      {0x38, 0x3c, 0x38, 0x3c, 1, 1},
      {0xbc, 0xbe, 0xbc, 0xbe, -1.5f, -1.5f},
      {0x38, 0x3c, 0x38, 0x3c, 1, 1},
      {0x3a, 0x3d, 0x3a, 0x3d, 1.25f, 1.25f},
      {0x7e, 0x5f, 0x7e, 0x5f, 448, 448},
      {0x7e, 0x5f, 0x7e, 0x5f, 448, 448},
      {0x7e, 0x5f, 0x7f, 0x5f, 448, 448},
      {0x7e, 0x7b, 0x7f, 0x7c, 448, 57344},
      {0x01, 0x18, 0x01, 0x18, 0.001953125f, 0.001953125f},
      {0x00, 0x01, 0x00, 0x01, 0, 0.0000152587890625f},
      {0xf9, 0xdd, 0xf9, 0xdd, -288, -320},
  };
  float *in, *out;
  Converted* converted;
  uint32_t* words;
  cudaMallocManaged(&in, kInputs * sizeof(float));
  cudaMallocManaged(&out, kInputs * sizeof(float));
  cudaMallocManaged(&words, kInputs / 4 * sizeof(uint32_t));
  cudaMallocManaged(&converted, kInputs * sizeof(Converted));
  for (int i = 0; i < kInputs; i++) in[i] = inputs[i], out[i] = 0;
  convert<<<1, kInputs>>>(converted, in);
  scale<<<1, kInputs / 4>>>((float4*)out, words, (const float4*)in, 2.0f);
  float* product;
  cudaMallocManaged(&product, 16 * 8 * sizeof(float));
  multiply<<<1, 32>>>(product);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  // 1.25 and 1.75 are numbers of E5M2.
  for (int i = 0; i < 16 * 8; i++) wrong |= expect("product", i, product[i], 32 * 1.5f * 0.25f * (i % 8));
  cudaFree(product);
  for (int i = 0; i < kInputs; i++) {
    wrong |= expect("E4M3", i, converted[i].e4m3, expected[i].e4m3);
    wrong |= expect("E5M2", i, converted[i].e5m2, expected[i].e5m2);
    wrong |= expect("E4M3, unsaturated", i, converted[i].unsaturated_e4m3, expected[i].unsaturated_e4m3);
    wrong |= expect("E5M2, unsaturated", i, converted[i].unsaturated_e5m2, expected[i].unsaturated_e5m2);
    wrong |= expect("from E4M3", i, converted[i].from_e4m3, expected[i].from_e4m3);
    wrong |= expect("from E5M2", i, converted[i].from_e5m2, expected[i].from_e5m2);
    const float rounding = i % 4 ? 0 : expected[i].from_e5m2 - inputs[i];
    wrong |= expect("scaled", i, out[i], 2 * expected[i].from_e4m3 + rounding);
  }
  for (int i = 0; i < kInputs / 4; i++) {
    uint32_t word = 0;
    for (int j = 0; j < 4; j++) word |= uint32_t(expected[4 * i + j].e4m3) << 8 * j;
    wrong |= expect("word", i, words[i], word);
  }
  for (void* memory : {(void*)in, (void*)out, (void*)converted, (void*)words}) cudaFree(memory);
  return wrong;
}
