// Kernels, one or a few for each feature. This code does not depend on the emulator. `unsigned` results are
// compared bit for bit.
#include <cuda_runtime.h>

#include <cmath>

#include "feature_list.h"

namespace {

// ---- functions, variables, launches
// -------------------------------------------------------------------------------

__constant__ int table[4] = {10, 20, 30, 40};
__constant__ float scale;
__device__ unsigned counter_of_blocks;

__host__ __device__ int twice(int x) { return 2 * x; }
__device__ __forceinline__ int thrice(int x) { return 3 * x; }
__device__ __noinline__ int next(int x) { return x + 1; }

__global__ void __launch_bounds__(64, 2) functions_kernel(int* __restrict__ out, const int* __restrict__ in) {
  out[threadIdx.x] = next(thrice(twice(in[threadIdx.x]))) + table[threadIdx.x % 4];
}
Values functions() {
  std::vector<int> in(64);
  for (int i = 0; i < 64; i++) in[i] = i;
  const Memory<int> input(in);
  return results<int>(64, [&](int* out) { functions_kernel<<<1, 64>>>(out, input.data()); });
}

__global__ void constant_kernel(float* out) { out[threadIdx.x] = scale * float(threadIdx.x); }
Values constant_memory() {
  const float value = 0.5f;
  check(cudaMemcpyToSymbol(scale, &value, sizeof(value)));
  return results<float>(4, [](float* out) { constant_kernel<<<1, 4>>>(out); });
}

// Each thread of a 3-D grid writes its indices to its own place.
__global__ void indices_kernel(unsigned* out) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned thread = threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z);
  out[block * blockDim.x * blockDim.y * blockDim.z + thread] =
      threadIdx.x | threadIdx.y << 4 | threadIdx.z << 8 | blockIdx.x << 12 | blockIdx.y << 16 |
      blockIdx.z << 20 | unsigned(warpSize == 32) << 24;
}
Values indices() {
  return results<unsigned>(2 * 3 * 4 * 5 * 3 * 2, [](unsigned* out) {
    const dim3 block(5, 3, 2);
    indices_kernel<<<dim3(2, 3, 4), block>>>(out);
  });
}

template <typename T, int N>
__global__ void template_kernel(T* out, T step) {
  out[threadIdx.x] = step * T(threadIdx.x) + T(N);
}
#define LAUNCH_TEMPLATE(T, N, out, step) template_kernel<T, N><<<1, N>>>(out, step)
constexpr int blocks_for(int n, int threads) { return (n + threads - 1) / threads; }

// Expressions with commas, templates, a stream, a macro, a lambda.
Values launches() {
  return results<double>(16, [](double* out) {
    cudaStream_t stream;
    check(cudaStreamCreate(&stream));
    template_kernel<double, 3><<<(blocks_for(3, 32)), dim3(std::max(1, 3), 1), 0, stream>>>(out, 0.5);
    LAUNCH_TEMPLATE(double, 4, out + 4, 0.25);
    auto launch = [&](auto step) {
      template_kernel<decltype(step), 8><<<blocks_for(8, 8), 8, sizeof(double) * 2>>>(out + 8, step);
    };
    launch(-1.0);
    check(cudaStreamSynchronize(stream));
    check(cudaStreamDestroy(stream));
  });
}

// A kernel has its own copy of its arguments, and so does each of its threads.
__global__ void arguments_kernel(int* out, int value) {
  value += int(threadIdx.x);
  out[threadIdx.x] = value;
}
Values arguments() {
  return results<int>(8, [](int* out) { arguments_kernel<<<1, 8>>>(out, 100); });
}

// ---- shared memory
// -------------------------------------------------------------------------------------------------

__global__ void transpose_kernel(int* out, const int* in) {
  __shared__ int tile[8][9], total;
  tile[threadIdx.y][threadIdx.x] = in[threadIdx.y * 8 + threadIdx.x];
  if (threadIdx.x == 0 && threadIdx.y == 0) total = 1000;
  __syncthreads();
  out[threadIdx.y * 8 + threadIdx.x] = tile[threadIdx.x][threadIdx.y] + total;
}
Values shared_static() {
  std::vector<int> in(64);
  for (int i = 0; i < 64; i++) in[i] = i;
  const Memory<int> input(in);
  return results<int>(64, [&](int* out) { transpose_kernel<<<1, dim3(8, 8)>>>(out, input.data()); });
}

// Two instances of one function have two variables; a second call of one has the same.
template <int N>
__device__ int* counter() {
  __shared__ int value[N];
  return value;
}
__global__ void shared_template_kernel(int* out) {
  if (threadIdx.x == 0) {
    counter<1>()[0] = 5;
    counter<2>()[0] = 7;
    counter<2>()[1] = 9;
  }
  __syncthreads();
  if (threadIdx.x == 1) {
    out[0] = counter<1>()[0], out[1] = counter<2>()[0], out[2] = counter<2>()[1];
    out[3] = counter<1>() != counter<2>();
  }
}
Values shared_template() {
  return results<int>(4, [](int* out) { shared_template_kernel<<<1, 2>>>(out); });
}

// Two dynamic arrays in one piece of memory.
__global__ void dynamic_kernel(double* out, int n) {
  extern __shared__ double whole[];
  double* left = whole;
  int* right = reinterpret_cast<int*>(whole + n);
  left[threadIdx.x] = threadIdx.x * 0.5;
  right[threadIdx.x] = int(threadIdx.x) * 3;
  __syncthreads();
  const int other = n - 1 - int(threadIdx.x);
  out[blockIdx.x * n + threadIdx.x] = left[other] + right[other];
}
Values shared_dynamic() {
  return results<double>(
      96, [](double* out) { dynamic_kernel<<<2, 48, 48 * (sizeof(double) + sizeof(int))>>>(out, 48); });
}

// A tree reduction with a barrier in each step.
template <typename T, int threads>
__global__ void sum_kernel(T* sums, const T* in) {
  __shared__ T partial[threads];
  const int t = threadIdx.x;
  partial[t] = in[blockIdx.x * threads + t];
  __syncthreads();
  for (int half = threads / 2; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}
Values shared_sum() {
  std::vector<int> in(4 * 1024);
  for (int i = 0; i < int(in.size()); i++) in[i] = i * i % 1000;
  const Memory<int> input(in);
  return results<int>(4, [&](int* sums) { sum_kernel<int, 1024><<<4, 1024>>>(sums, input.data()); });
}

// ---- barriers
// ------------------------------------------------------------------------------------------------------

__global__ void barrier_votes_kernel(int* out) {
  const int t = threadIdx.x;
  const int third = __syncthreads_count(t % 3 == 0);
  const int all = __syncthreads_and(t < 70), not_all = __syncthreads_and(t < 69);
  const int some = __syncthreads_or(t == 41), none = __syncthreads_or(t > 100);
  out[t] = third << 4 | int(all != 0) << 3 | int(not_all != 0) << 2 | int(some != 0) << 1 | int(none != 0);
}
Values barrier_votes() {
  return results<int>(70, [](int* out) { barrier_votes_kernel<<<1, 70>>>(out); });
}

// Threads that have returned do not block the others, neither at barriers nor in masks.
__global__ void returned_kernel(int* out) {
  __shared__ int value;
  const int t = threadIdx.x;
  if (t >= 40) return;
  if (t == 0) value = 17;
  __syncthreads();
  out[t] = value + __syncthreads_count(1);
}
Values barrier_after_return() {
  return results<int>(64, [](int* out) { returned_kernel<<<1, 64>>>(out); });
}

__global__ void syncwarp_kernel(int* out) {
  __shared__ int values[64];
  const unsigned t = threadIdx.x, lane = t % 32;
  values[t] = int(t);
  __syncwarp();
  int sum = values[t ^ 1];
  __syncwarp();
  if (lane < 16) {
    values[t] = sum;
    __syncwarp(0x0000ffff);
    sum = values[t ^ 8];
  } else {
    values[t] = -sum;
    __syncwarp(0xffff0000u);
    sum = values[t ^ 4];
  }
  out[t] = sum;
}
Values syncwarp() {
  return results<int>(64, [](int* out) { syncwarp_kernel<<<1, 64>>>(out); });
}

// ---- shuffles and votes
// ---------------------------------------------------------------------------------------------

// Every operation, with every width, and sources in and out of range. 10 values a lane and width.
__global__ void shuffle_kernel(int* out) {
  const int lane = threadIdx.x, value = 100 + lane;
  const unsigned all = 0xffffffffu;
  int* mine = out + lane;
  for (int width = 1; width <= 32; width *= 2) {
    const int got[10] = {
        __shfl_sync(all, value, 3, width),      __shfl_sync(all, value, lane + 5, width),
        __shfl_sync(all, value, -1, width),     __shfl_up_sync(all, value, 1, width),
        __shfl_up_sync(all, value, 7, width),   __shfl_down_sync(all, value, 1, width),
        __shfl_down_sync(all, value, 6, width), __shfl_xor_sync(all, value, 1, width),
        __shfl_xor_sync(all, value, 4, width),  __shfl_xor_sync(all, value, 31, width),
    };
    for (int i = 0; i < 10; i++, mine += 32) *mine = got[i];
  }
}
Values shuffles() {
  return results<int>(6 * 10 * 32, [](int* out) { shuffle_kernel<<<1, 32>>>(out); });
}

template <typename T>
__global__ void shuffle_type_kernel(T* out, T first, T step) {
  const T value = first + step * T(threadIdx.x);
  T sum = value;
  for (int offset = 16; offset > 0; offset /= 2) sum += __shfl_down_sync(0xffffffff, sum, offset);
  out[threadIdx.x] = __shfl_sync(0xffffffff, sum, 0) + __shfl_xor_sync(0xffffffff, value, 3);
}
template <typename T>
Values shuffles_of(T first, T step) {
  return results<T>(32, [&](T* out) { shuffle_type_kernel<T><<<1, 32>>>(out, first, step); });
}
Values shuffle_unsigned() { return shuffles_of<unsigned>(4000000000u, 3); }
Values shuffle_long_long() { return shuffles_of<long long>(-5000000000, 7); }
Values shuffle_unsigned_long() { return shuffles_of<unsigned long>(1ul << 60, 1); }
Values shuffle_float() { return shuffles_of<float>(0.5f, 0.25f); }
Values shuffle_double() { return shuffles_of<double>(-8, 0.125); }

// The halves of a diverged warp shuffle among themselves.
__global__ void shuffle_mask_kernel(int* out) {
  const int lane = threadIdx.x;
  int value = lane * lane;
  if (lane % 2)
    value = __shfl_sync(0xaaaaaaaau, value, (lane + 2) % 32);
  else
    value = -__shfl_sync(0x55555555u, value, (lane + 30) % 32);
  out[lane] = value;
}
Values shuffle_mask() {
  return results<int>(32, [](int* out) { shuffle_mask_kernel<<<1, 32>>>(out); });
}

__global__ void vote_kernel(unsigned* out) {
  const unsigned t = threadIdx.x, lane = t % 32, warp = t / 32;
  const unsigned mask = warp == 0 ? 0xffffffffu : 0xffu;  // the second warp has eight lanes
  unsigned* mine = out + t * 8;
  mine[0] = __ballot_sync(mask, lane % 3 == 0);
  mine[1] = unsigned(__any_sync(mask, lane == 7) != 0) | unsigned(__any_sync(mask, lane == 99) != 0) << 1;
  mine[2] = unsigned(__all_sync(mask, lane < 32) != 0) | unsigned(__all_sync(mask, lane < 5) != 0) << 1;
  if (lane < 4) {
    mine[3] = __ballot_sync(0xf, lane & 1);
    mine[4] = unsigned(__all_sync(0xf, lane < 4) != 0);
  }
  __syncwarp(mask);
  mine[5] = __activemask();
  mine[6] = __match_any_sync(mask, lane / 3);
  int same;
  const unsigned alike = __match_all_sync(mask, warp, &same);
  mine[7] = alike + unsigned(same);
}
Values votes() {
  return results<unsigned>(40 * 8, [](unsigned* out) { vote_kernel<<<1, 40>>>(out); });
}

// ---- atomics
// --------------------------------------------------------------------------------------------------------

// All threads update the same words: the results do not depend on their order.
template <typename T>
__global__ void atomic_integer_kernel(T* out) {
  const T t = T(blockIdx.x * blockDim.x + threadIdx.x);
  atomicAdd(out + 0, t);
  atomicMin(out + 1, T(1000) - t);
  atomicMax(out + 2, t * 2);
  atomicAnd(out + 3, ~(T(1) << (t % 20)));
  atomicOr(out + 4, T(1) << (t % 30));
  atomicXor(out + 5, t * t);
  atomicExch(out + 6, T(77));
  for (T seen = out[7], expected;; seen = expected) {  // a hand-written atomic addition
    expected = atomicCAS(out + 7, seen, seen + t);
    if (expected == seen) break;
  }
}
template <typename T>
Values atomics_of() {
  const Memory<T> memory(std::vector<T>{1, 5000, 3, T(-1), 0, 0, 5, 0});
  atomic_integer_kernel<T><<<3, 100>>>(memory.data());
  return values_of(memory);
}
Values atomic_int() { return atomics_of<int>(); }
Values atomic_unsigned() { return atomics_of<unsigned>(); }
Values atomic_unsigned_long_long() { return atomics_of<unsigned long long>(); }

// One thread, so that each returned value is known. Inc and dec wrap around by their own rules.
__global__ void atomic_returns_kernel(unsigned* out) {
  unsigned* shared_word = out + 30;
  *shared_word = 3;
  for (int i = 0; i < 4; i++) out[i] = atomicInc(shared_word, 5);  // 3 4 5 0
  out[4] = *shared_word;
  *shared_word = 9;
  out[5] = atomicInc(shared_word, 5);  // above the limit: to zero
  out[6] = *shared_word;
  *shared_word = 1;
  for (int i = 7; i < 10; i++) out[i] = atomicDec(shared_word, 5);  // 1 0 5
  out[10] = *shared_word;
  *shared_word = 9;
  out[11] = atomicDec(shared_word, 5);  // above the limit: to the limit
  out[12] = *shared_word;
  out[13] = atomicSub(shared_word, 7);
  out[14] = *shared_word;
  out[15] = atomicAdd(shared_word, 2);
  out[16] = atomicExch(shared_word, 50);
  out[17] = atomicCAS(shared_word, 49, 60);
  out[18] = atomicCAS(shared_word, 50, 60);
  out[19] = atomicMin(shared_word, 61u);
  out[20] = atomicMax(shared_word, 61u);
  out[21] = *shared_word;
  *reinterpret_cast<int*>(shared_word) = -5;
  out[22] = unsigned(atomicMin(reinterpret_cast<int*>(shared_word), 3));
  out[23] = unsigned(atomicMax(reinterpret_cast<int*>(shared_word), 3));
  out[24] = unsigned(atomicSub(reinterpret_cast<int*>(shared_word), 10));
  out[25] = *shared_word;
  out[26] = atomicAdd_block(shared_word, 1u);
  out[27] = atomicAdd_system(shared_word, 1u);
  out[28] = *shared_word;
  out[29] = 1;
}
Values atomic_returns() {
  return results<unsigned>(31, [](unsigned* out) { atomic_returns_kernel<<<1, 1>>>(out); });
}

// Sums of floats that are exact in any order.
template <typename T>
__global__ void atomic_float_kernel(T* out) {
  __shared__ T total;
  if (threadIdx.x == 0) total = 0;
  __syncthreads();
  atomicAdd(&total, T(threadIdx.x) * T(0.25));
  __syncthreads();
  if (threadIdx.x == 0) atomicAdd(out, total);
}
Values atomic_float() {
  return results<float>(1, [](float* out) { atomic_float_kernel<<<7, 96>>>(out); });
}
Values atomic_double() {
  return results<double>(1, [](double* out) { atomic_float_kernel<<<7, 96>>>(out); });
}

// ---- loads and fences, and their uses
// ---------------------------------------------------------------------------------

__global__ void loads_kernel(float* out, const float* in, const float4* in4) {
  const int t = threadIdx.x;
  __stcg(out + t, __ldg(in + t) + __ldcg(in + t) + __ldcs(in + t) + __ldca(in + t));
  const float4 four = __ldg(in4 + t / 4);
  __stcs(out + t, out[t] + four.w);
}
Values loads() {
  std::vector<float> in(32);
  for (int i = 0; i < 32; i++) in[i] = float(i);
  const Memory<float> input(in);
  return results<float>(32, [&](float* out) {
    loads_kernel<<<1, 32>>>(out, input.data(), reinterpret_cast<const float4*>(input.data()));
  });
}

// The last block to arrive adds up the results of the others.
__global__ void last_block_kernel(unsigned* sum, unsigned* parts) {
  __shared__ bool is_last;
  const unsigned part = __syncthreads_count(threadIdx.x <= blockIdx.x);
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = part;
    __threadfence();
    is_last = atomicInc(&counter_of_blocks, gridDim.x - 1) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 0) {
    unsigned total = 0;
    for (unsigned b = 0; b < gridDim.x; b++) total += __ldcg(parts + b);
    sum[0] = total;
  }
}
Values last_block() {
  const Memory<unsigned> parts(20);
  return results<unsigned>(1, [&](unsigned* sum) { last_block_kernel<<<20, 64>>>(sum, parts.data()); });
}

// Blocks that wait for each other: correct if all are resident at once, which holds for two on any device.
__global__ void grid_barrier_kernel(unsigned* out, unsigned* arrived) {
  const unsigned t = threadIdx.x;
  out[blockIdx.x * blockDim.x + t] = 10 * blockIdx.x + t;
  for (unsigned round = 1; round <= 3; round++) {
    __threadfence();
    __syncthreads();
    if (t == 0) {
      atomicAdd(arrived, 1u);
      while (atomicAdd(arrived, 0u) < round * gridDim.x) {
      }
    }
    __syncthreads();
    const unsigned other = __ldcg(out + (gridDim.x - 1 - blockIdx.x) * blockDim.x + t);
    __threadfence();
    __syncthreads();
    if (t == 0) {
      atomicAdd(arrived + 1, 1u);
      while (atomicAdd(arrived + 1, 0u) < round * gridDim.x) {
      }
    }
    __syncthreads();
    __stcg(out + blockIdx.x * blockDim.x + t, other + round);
  }
}
Values grid_barrier() {
  const Memory<unsigned> arrived(2);
  return results<unsigned>(16, [&](unsigned* out) { grid_barrier_kernel<<<2, 8>>>(out, arrived.data()); });
}

// ---- vector types
// -------------------------------------------------------------------------------------------------------

__global__ void vectors_kernel(float4* out, const float2* in) {
  const float2 pair = in[threadIdx.x];
  const int3 whole = make_int3(1, 2, 3);
  const uchar4 bytes = make_uchar4(1, 2, 3, 255);
  const double2 wide = make_double2(0.5, 0.25);
  out[threadIdx.x] = make_float4(pair.x + pair.y, float(whole.x + whole.y * whole.z), float(bytes.w),
                                 float(wide.x * wide.y));
}
Values vectors() {
  std::vector<float2> in(8);
  for (int i = 0; i < 8; i++) in[i] = make_float2(float(i), 0.5f);
  const Memory<float2> input(in);
  return results<float>(
      32, [&](float* out) { vectors_kernel<<<1, 8>>>(reinterpret_cast<float4*>(out), input.data()); });
}

template <typename T>
__device__ unsigned layout() {
  return unsigned(sizeof(T) << 8 | alignof(T));
}
__global__ void layouts_kernel(unsigned* out) {
  const unsigned all[] = {layout<char1>(),     layout<char2>(),      layout<char3>(),   layout<char4>(),
                          layout<uchar4>(),    layout<short2>(),     layout<short3>(),  layout<ushort4>(),
                          layout<int2>(),      layout<int3>(),       layout<uint4>(),   layout<long2>(),
                          layout<ulong3>(),    layout<float1>(),     layout<float2>(),  layout<float3>(),
                          layout<float4>(),    layout<double1>(),    layout<double2>(), layout<double3>(),
                          layout<longlong2>(), layout<ulonglong2>(), layout<dim3>(),    layout<uint3>()};
  for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = all[i];
}
Values layouts() {
  return results<unsigned>(24, [](unsigned* out) { layouts_kernel<<<1, 1>>>(out); });
}

// ---- integers
// -------------------------------------------------------------------------------------------------------------

__global__ void integers_kernel(unsigned* out, unsigned x, unsigned y, unsigned long long wide) {
  const unsigned all[] = {unsigned(__clz(int(x))),
                          unsigned(__clz(0)),
                          unsigned(__clz(-1)),
                          unsigned(__clzll((long long)wide)),
                          unsigned(__ffs(int(x))),
                          unsigned(__ffs(0)),
                          unsigned(__ffsll((long long)wide)),
                          unsigned(__popc(x)),
                          unsigned(__popcll(wide)),
                          __brev(x),
                          unsigned(__brevll(wide) >> 32),
                          unsigned(__brevll(wide)),
                          __byte_perm(x, y, 0x5140),
                          __byte_perm(x, y, 0x7362),
                          __funnelshift_l(x, y, 8),
                          __funnelshift_l(x, y, 40),
                          __funnelshift_lc(x, y, 40),
                          __funnelshift_r(x, y, 8),
                          __funnelshift_r(x, y, 33),
                          __funnelshift_rc(x, y, 33),
                          unsigned(__mulhi(int(x), int(y))),
                          __umulhi(x, y),
                          unsigned(__umul64hi(wide, wide) >> 32),
                          unsigned(__umul64hi(wide, wide)),
                          unsigned(__mul24(int(x), int(y))),
                          __umul24(x, y),
                          __sad(int(x), int(y), 3),
                          __usad(x, y, 3),
                          unsigned(__hadd(int(x), int(y))),
                          unsigned(__rhadd(int(x), int(y))),
                          __uhadd(x, y),
                          __urhadd(x, y),
                          unsigned(min(-1, 2)),
                          unsigned(max(-1, 2)),
                          min(x, y),
                          unsigned(max(-1, 2u)),
                          unsigned(__dp4a(int(x), int(y), 5)),
                          __dp4a(x, y, 5u)};
  for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = all[i];
}
Values integers() {
  return results<unsigned>(38, [](unsigned* out) {
    integers_kernel<<<1, 1>>>(out, 0x00f01234u, 0x89abcdefu, 0x0000100000000060ull);
  });
}

// ---- floating point
// ---------------------------------------------------------------------------------------------------------

// Rounding in all directions, of values that every direction changes.
__global__ void rounding_kernel(float* out, float a, float b) {
  const float all[] = {__fadd_rn(a, b),    __fadd_rz(a, b),    __fadd_ru(a, b),    __fadd_rd(a, b),
                       __fmul_rn(a, a),    __fmul_rz(a, a),    __fmul_ru(a, a),    __fmul_rd(a, a),
                       __fdiv_rn(a, 3),    __fdiv_rz(a, 3),    __fdiv_ru(a, 3),    __fdiv_rd(a, 3),
                       __fsqrt_rn(a),      __fsqrt_rz(a),      __fsqrt_ru(a),      __fsqrt_rd(a),
                       __frcp_rn(a),       __frcp_rz(a),       __frcp_ru(a),       __frcp_rd(a),
                       __fmaf_rn(a, a, b), __fmaf_rz(a, a, b), __fmaf_ru(a, a, b), __fmaf_rd(a, a, b),
                       __fsub_rn(a, b),    __fsub_ru(-a, b),   __fsub_rd(-a, b),   __frsqrt_rn(a)};
  for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = all[i];
}
Values rounding() {
  return results<float>(28, [](float* out) { rounding_kernel<<<1, 1>>>(out, 1.1f, 1e-9f); });
}

__global__ void rounding_double_kernel(double* out, double a, double b) {
  const double all[] = {__dadd_rn(a, b),
                        __dadd_rz(a, b),
                        __dadd_ru(a, b),
                        __dadd_rd(a, b),
                        __dmul_ru(a, a),
                        __dmul_rd(a, a),
                        __ddiv_ru(a, 3),
                        __ddiv_rd(a, 3),
                        __dsqrt_ru(a),
                        __dsqrt_rd(a),
                        __fma_ru(a, a, b),
                        __fma_rd(a, a, b),
                        __ll2double_ru(9007199254740993ll),
                        __ll2double_rd(9007199254740993ll)};
  for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = all[i];
}
Values rounding_double() {
  return results<double>(14, [](double* out) { rounding_double_kernel<<<1, 1>>>(out, 1.1, 1e-20); });
}

// Conversions that saturate, round ties, and convert NaN to a defined value.
__global__ void conversions_kernel(long long* out, float nan, float infinity) {
  const long long all[] = {__float2int_rn(2.5f),
                           __float2int_rn(3.5f),
                           __float2int_rz(-2.7f),
                           __float2int_ru(2.1f),
                           __float2int_rd(-2.1f),
                           __float2int_rn(1e20f),
                           __float2int_rn(-1e20f),
                           __float2int_rz(nan),
                           __float2uint_rn(-3.0f),
                           __float2uint_rn(infinity),
                           __float2ll_rz(-1.5f),
                           __float2ll_rn(infinity),
                           (long long)__float2ull_rn(-1.0f),
                           __double2int_rn(2.5),
                           __double2int_rz(-1e300),
                           __double2uint_rz(4294967295.9),
                           __double2ll_rn(1e300),
                           __float_as_int(1.0f),
                           __float_as_int(-0.0f),
                           (long long)__float_as_uint(-2.0f),
                           __float_as_int(__int_as_float(0x12345678)),
                           __double_as_longlong(-1.0),
                           __double2hiint(1.5),
                           __double2loint(__hiloint2double(7, 9)),
                           __float_as_int(__int2float_rn(16777217)),
                           __float_as_int(__int2float_ru(16777217)),
                           __float_as_int(__uint2float_rd(4294967295u)),
                           __float_as_int(__double2float_rn(0.1)),
                           __float_as_int(__double2float_rd(0.1)),
                           __float_as_int(__ll2float_rz(9007199791611905ll))};
  for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = all[i];
}
Values conversions() {
  return results<long long>(30,
                            [](long long* out) { conversions_kernel<<<1, 1>>>(out, nanf(""), HUGE_VALF); });
}

// Functions that are exact by definition, including NaN and infinity.
__global__ void exact_kernel(float* out, float nan, float infinity) {
  const float all[] = {fminf(nan, 1),          fmaxf(nan, 1),    fminf(2, nan),     fmaxf(-infinity, nan),
                       fminf(-1, 2),           fmaxf(-1, 2),     __saturatef(1.5f), __saturatef(-0.5f),
                       __saturatef(0.25f),     __saturatef(nan), fabsf(-3),         floorf(-1.5f),
                       ceilf(-1.5f),           truncf(-1.5f),    rintf(2.5f),       roundf(2.5f),
                       copysignf(2, -0.0f),    fmaf(2, 3, 4),    sqrtf(2),          float(isnan(nan)),
                       float(isinf(infinity)), ldexpf(3, 4),     fmodf(7.5f, 2),    max(1.5f, 2.5f),
                       min(1.5f, 2.5f),        expf(-infinity),  tanhf(infinity)};
  for (unsigned i = 0; i < sizeof(all) / sizeof(*all); i++) out[i] = all[i];
}
Values exact() {
  return results<float>(27, [](float* out) { exact_kernel<<<1, 1>>>(out, nanf(""), HUGE_VALF); });
}

// Functions whose maximum error is in CUDA's guide. 16 ulp covers all of them and the error of the host.
template <typename T>
__global__ void maths_kernel(T* out) {
  const T x = T(threadIdx.x + 1) / T(16);
  T* mine = out + threadIdx.x * 24;
  const T all[24] = {exp(x),  exp(-x), expm1(x), log(x),         log1p(x),       log2(x),
                     sin(x),  cos(x),  tan(x),   asin(x / 2),    acos(x / 4),    atan(x),
                     sinh(x), cosh(x), tanh(x),  pow(x, T(1.7)), cbrt(x),        rsqrt(x),
                     erf(x),  erfc(x), sinpi(x), cospi(x),       hypot(x, T(1)), rcbrt(x)};
  for (int i = 0; i < 24; i++) mine[i] = all[i];
}
Values maths_float() {
  return results<float>(32 * 24, [](float* out) { maths_kernel<float><<<1, 32>>>(out); }, 16);
}
Values maths_double() {
  return results<double>(32 * 24, [](double* out) { maths_kernel<double><<<1, 32>>>(out); }, 16);
}

__global__ void rare_maths_kernel(double* out) {
  const double x = double(threadIdx.x + 1) / 17;
  const double all[] = {erfinv(x),       erfcinv(x),       erfcx(4 * x),       normcdf(x - 1), normcdfinv(x),
                        norm3d(x, 1, 2), rnorm3d(x, 1, 2), norm4d(x, 1, 2, 3), rhypot(x, 1.0), exp10(x)};
  for (int i = 0; i < 10; i++) out[threadIdx.x * 10 + i] = all[i];
}
Values rare_maths() {
  return results<double>(160, [](double* out) { rare_maths_kernel<<<1, 16>>>(out); }, 64);
}

// Less exact than the plain functions, as the guide specifies.
__global__ void fast_maths_kernel(float* out) {
  const float x = float(threadIdx.x + 1) / 16;
  const float all[] = {__expf(x),        __logf(x + 2),  __powf(x, 1.5f),
                       __fdividef(x, 3), __log2f(x + 2), __exp10f(x)};
  for (int i = 0; i < 6; i++) out[threadIdx.x * 6 + i] = all[i];
}
Values fast_maths() {
  return results<float>(32 * 6, [](float* out) { fast_maths_kernel<<<1, 32>>>(out); }, 64);
}

}  // namespace

#define FEATURE(name) {#name, name}
Features features() {
  return {FEATURE(functions),
          FEATURE(constant_memory),
          FEATURE(indices),
          FEATURE(launches),
          FEATURE(arguments),
          FEATURE(shared_static),
          FEATURE(shared_template),
          FEATURE(shared_dynamic),
          FEATURE(shared_sum),
          FEATURE(barrier_votes),
          FEATURE(barrier_after_return),
          FEATURE(syncwarp),
          FEATURE(shuffles),
          FEATURE(shuffle_unsigned),
          FEATURE(shuffle_long_long),
          FEATURE(shuffle_unsigned_long),
          FEATURE(shuffle_float),
          FEATURE(shuffle_double),
          FEATURE(shuffle_mask),
          FEATURE(votes),
          FEATURE(atomic_int),
          FEATURE(atomic_unsigned),
          FEATURE(atomic_unsigned_long_long),
          FEATURE(atomic_returns),
          FEATURE(atomic_float),
          FEATURE(atomic_double),
          FEATURE(loads),
          FEATURE(last_block),
          FEATURE(grid_barrier),
          FEATURE(vectors),
          FEATURE(layouts),
          FEATURE(integers),
          FEATURE(rounding),
          FEATURE(rounding_double),
          FEATURE(conversions),
          FEATURE(exact),
          FEATURE(maths_float),
          FEATURE(maths_double),
          FEATURE(rare_maths),
          FEATURE(fast_maths)};
}
