// half and bfloat16: conversions, arithmetic, pairs, shuffles, atomics.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_runtime.h>

#include "feature_list.h"

namespace {

__device__ unsigned short bits(__half value) { return __half_as_ushort(value); }
__device__ unsigned short bits(__nv_bfloat16 value) { return __bfloat16_as_ushort(value); }
template <typename T>
__device__ T make(float value);
template <>
__device__ __half make<__half>(float value) {
  return __float2half(value);
}
template <>
__device__ __nv_bfloat16 make<__nv_bfloat16>(float value) {
  return __float2bfloat16(value);
}

// Ties, the largest finite number, the first that overflows, the smallest above zero, NaN.
template <typename T>
__global__ void conversion_kernel(unsigned short* out, const float* in, int n) {
  for (int i = 0; i < n; i++) out[i] = bits(make<T>(in[i]));
}
const std::vector<float> kConverted = {
    0.0f,     -0.0f,   1.0f,    0.1f,    -2.5f,  65504.0f, 65519.0f, 65520.0f,   1e9f,        5.96e-8f,
    2.98e-8f, 2049.0f, 2051.0f, 6.1e-5f, 257.0f, 259.0f,   1e-40f,   3.3895e38f, 1.00390625f, 1.01171875f};
template <typename T>
Values conversion_of() {
  const Memory<float> input(kConverted);
  return results<unsigned short>(kConverted.size(), [&](unsigned short* out) {
    conversion_kernel<T><<<1, 1>>>(out, input.data(), int(kConverted.size()));
  });
}
Values half_conversion() { return conversion_of<__half>(); }
Values bfloat16_conversion() { return conversion_of<__nv_bfloat16>(); }

template <typename T>
__global__ void arithmetic_kernel(unsigned short* out) {
  const T a = make<T>(1.0f + threadIdx.x * 0.37f), b = make<T>(0.3f), c = make<T>(-0.7f * threadIdx.x);
  unsigned short* mine = out + threadIdx.x * 12;
  mine[0] = bits(__hadd(a, b)), mine[1] = bits(__hsub(a, b)), mine[2] = bits(__hmul(a, b));
  mine[3] = bits(__hdiv(a, b)), mine[4] = bits(__hfma(a, b, c)), mine[5] = bits(__hneg(a));
  mine[6] = __hlt(a, b), mine[7] = __hge(a, b), mine[8] = bits(__hmax(b, c)), mine[9] = bits(__hmin(b, c));
  mine[10] = __heq(a, a), mine[11] = bits(__habs(c));
}
template <typename T>
Values arithmetic_of() {
  return results<unsigned short>(16 * 12, [](unsigned short* out) { arithmetic_kernel<T><<<1, 16>>>(out); });
}
Values half_arithmetic() { return arithmetic_of<__half>(); }
Values bfloat16_arithmetic() { return arithmetic_of<__nv_bfloat16>(); }

__global__ void pairs_kernel(float* out) {
  const __half2 a = __floats2half2_rn(1.5f, -2.0f), b = __float2half2_rn(0.25f);
  const float2 sum = __half22float2(__hadd2(a, b)), fma = __half22float2(__hfma2(a, b, a));
  const __nv_bfloat162 c = __floats2bfloat162_rn(3.0f, 5.0f);
  const float all[] = {sum.x,
                       sum.y,
                       fma.x,
                       fma.y,
                       __low2float(c),
                       __high2float(__hmul2(c, c)),
                       __half2float(__high2half(a)),
                       __half2float(__low2half(a))};
  for (int i = 0; i < 8; i++) out[i] = all[i];
}
Values sixteen_bit_pairs() {
  return results<float>(8, [](float* out) { pairs_kernel<<<1, 1>>>(out); });
}

// Sums of quarters, exact in any order.
__global__ void shared_kernel(float* out, __half* half_sum, __nv_bfloat16* bfloat16_sum) {
  const float value = 0.25f * (threadIdx.x % 4);
  atomicAdd(half_sum, __float2half(value));
  atomicAdd(bfloat16_sum, __float2bfloat16(value));
  const __half other = __shfl_xor_sync(0xffffffff, __float2half(value), 2);
  __syncthreads();
  out[threadIdx.x] = __half2float(other) + __half2float(*half_sum) + __bfloat162float(*bfloat16_sum);
}
Values sixteen_bit_sharing() {
  const Memory<unsigned short> sums(2);
  return results<float>(32, [&](float* out) {
    shared_kernel<<<1, 32>>>(out, reinterpret_cast<__half*>(sums.data()),
                             reinterpret_cast<__nv_bfloat16*>(sums.data() + 1));
  });
}

}  // namespace

#define FEATURE(name) {#name, name}
Features sixteen_bit_features() {
  return {FEATURE(half_conversion),     FEATURE(bfloat16_conversion), FEATURE(half_arithmetic),
          FEATURE(bfloat16_arithmetic), FEATURE(sixteen_bit_pairs),   FEATURE(sixteen_bit_sharing)};
}
