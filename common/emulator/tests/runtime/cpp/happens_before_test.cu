// Correct kernels that order their accesses in every possible way: none may be reported as a race, nor any of
// their reads as a read of uninitialised memory.
#include "launch_report.h"

namespace {

using byte = unsigned char;
using half_bits = unsigned short;

// ---- barriers
// ---------------------------------------------------------------------------------------------------

template <typename T>
__global__ void sum_kernel(T* sums, const T* in) {
  __shared__ T partial[256];
  const int t = threadIdx.x;
  partial[t] = in[blockIdx.x * 256 + t];
  __syncthreads();
  for (int half = 128; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}
template <typename T>
void sum() {
  T *in = device("in", counting_up<T>(1024)), *sums = fresh<T>("sums", 4);
  expect_silence([&] { sum_kernel<T><<<4, 256>>>(sums, in); });
}
TEST(Ordered, SumByHalving) {
  sum<float>();
  sum<double>();
  sum<half_bits>();
  sum<byte>();
}

__global__ void transpose_kernel(float* out, const float* in, int n) {
  __shared__ float tile[16][17];
  const int x = blockIdx.x * 16 + threadIdx.x, y = blockIdx.y * 16 + threadIdx.y;
  if (x < n && y < n) tile[threadIdx.y][threadIdx.x] = in[y * n + x];
  __syncthreads();
  const int u = blockIdx.y * 16 + threadIdx.x, v = blockIdx.x * 16 + threadIdx.y;
  if (u < n && v < n) out[v * n + u] = tile[threadIdx.x][threadIdx.y];
}
TEST(Ordered, Transpose) {
  float *in = device("in", counting_up<float>(40 * 40)), *out = fresh<float>("out", 40 * 40);
  expect_silence([&] { transpose_kernel<<<dim3(3, 3), dim3(16, 16)>>>(out, in, 40); });
}

// Two tiles in turn: one barrier per step is enough.
__global__ void double_buffer_kernel(float* out, const float* in, int steps) {
  __shared__ float buffer[2][64];
  const int t = threadIdx.x;
  float sum = 0;
  buffer[0][t] = in[t];
  for (int step = 0; step < steps; step++) {
    __syncthreads();
    if (step + 1 < steps) buffer[(step + 1) % 2][t] = in[(step + 1) * 64 + t];
    sum += buffer[step % 2][(t + 7) % 64];
  }
  out[t] = sum;
}
TEST(Ordered, DoubleBuffer) {
  float *in = device("in", counting_up<float>(64 * 9)), *out = fresh<float>("out", 64);
  expect_silence([&] { double_buffer_kernel<<<1, 64>>>(out, in, 9); });
}

// Neighbours share words, in shared memory and in global memory.
template <typename T>
__global__ void neighbours_kernel(T* data) {
  __shared__ T tile[66];
  const int t = threadIdx.x, i = blockIdx.x * 64 + t;
  tile[t + 1] = data[i];
  if (t == 0) tile[0] = tile[65] = 0;
  __syncthreads();
  const T sum = tile[t] + tile[t + 1] + tile[t + 2];
  __syncthreads();
  tile[t + 1] = sum;
  __syncthreads();
  data[i] = tile[64 - t];
}
template <typename T>
void neighbours() {
  T* data = device("data", counting_up<T>(64 * 5));
  expect_silence([&] { neighbours_kernel<T><<<5, 64>>>(data); });
}
TEST(Ordered, NeighboursInOneWord) {
  neighbours<byte>();
  neighbours<half_bits>();
  neighbours<double>();
}

__global__ void dynamic_kernel(int* out, const int* in, int n) {
  extern __shared__ int keys[];
  byte* flags = reinterpret_cast<byte*>(keys + n);
  const int t = threadIdx.x;
  keys[t] = in[t];
  flags[t] = in[t] % 3 == 0;
  __syncthreads();
  for (int size = 2; size <= n; size *= 2)  // bitonic sort
    for (int step = size / 2; step > 0; step /= 2) {
      const int other = t ^ step;
      if (other > t && (keys[t] > keys[other]) == ((t & size) == 0)) {
        const int key = keys[t];
        keys[t] = keys[other];
        keys[other] = key;
      }
      __syncthreads();
    }
  out[t] = flags[n - 1 - t] ? keys[t] : 0;
}
TEST(Ordered, SortInDynamicMemory) {
  std::vector<int> keys;
  for (int i = 0; i < 128; i++) keys.push_back(i * 37 % 128);
  int *in = device("in", keys), *out = fresh<int>("out", 128);
  expect_silence([&] { dynamic_kernel<<<1, 128, 128 * 5>>>(out, in, 128); });
}

__global__ void returned_kernel(float* out, int n) {
  __shared__ float value[64];
  const int t = threadIdx.x;
  value[t] = t;
  if (t >= n) return;
  __syncthreads();
  out[t] = value[n - 1 - t] + value[63 - t];  // writes of a thread before it returned count, too
}
TEST(Ordered, ThreadsThatReturned) {
  float* out = fresh<float>("out", 64);
  expect_silence([&] { returned_kernel<<<1, 64>>>(out, 40); });
}

__global__ void step_kernel(float* to, const float* from, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) to[i] = 0.5f * (from[(i + 1) % n] + from[(i + n - 1) % n]);
}
TEST(Ordered, LaunchesInARow) {
  float *a = device("a", counting_up<float>(500)), *b = fresh<float>("b", 500);
  expect_silence([&] {
    for (int step = 0; step < 6; step++) {
      step_kernel<<<8, 64>>>(b, a, 500);
      step_kernel<<<8, 64>>>(a, b, 500);
    }
  });
}

// ---- warps
// ------------------------------------------------------------------------------------------------------

__global__ void warp_sum_kernel(float* sums, const float* in) {
  __shared__ float values[128];
  const int t = threadIdx.x, lane = t % 32;
  values[t] = in[t];
  __syncwarp();
  for (int half = 16; half > 0; half /= 2) {
    const float sum = lane < half ? values[t] + values[t + half] : 0;
    __syncwarp();
    if (lane < half) values[t] = sum;
    __syncwarp();
  }
  if (lane == 0) sums[t / 32] = values[t];
}
__global__ void volatile_sum_kernel(float* sums, const float* in) {
  __shared__ float values[64];
  const int t = threadIdx.x;
  values[t] = in[t];
  __syncthreads();
  if (t >= 32) return;
  volatile float* v = values;
  for (int half = 32; half > 0; half /= 2) {
    const float sum = v[t] + (t < half ? v[t + half] : 0);
    __syncwarp();
    v[t] = sum;
    __syncwarp();
  }
  if (t == 0) sums[0] = v[0];
}
TEST(Ordered, SumOfAWarp) {
  float *in = device("in", counting_up<float>(128)), *sums = fresh<float>("sums", 4);
  expect_silence([&] { warp_sum_kernel<<<1, 128>>>(sums, in); });
  expect_silence([&] { volatile_sum_kernel<<<1, 64>>>(sums, in); });
}

__global__ void shuffle_sum_kernel(float* sum, const float* in) {
  __shared__ float of_warp[32];
  const int t = threadIdx.x;
  float value = in[t];
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_down_sync(0xffffffff, value, offset);
  if (t % 32 == 0) of_warp[t / 32] = value;
  __syncthreads();
  if (t >= 32) return;
  value = t < int(blockDim.x) / 32 ? of_warp[t] : 0;
  for (int offset = 16; offset > 0; offset /= 2) value += __shfl_xor_sync(0xffffffff, value, offset);
  if (t == 0) sum[0] = value;
}
TEST(Ordered, SumByShuffles) {
  float *in = device("in", counting_up<float>(256)), *sum = fresh<float>("sum", 1);
  expect_silence([&] { shuffle_sum_kernel<<<1, 256>>>(sum, in); });
}

// Groups of lanes synchronise, then in other groups; each lane passes on what it knows.
__global__ void groups_kernel(int* out) {
  __shared__ int values[32];
  const unsigned lane = threadIdx.x;
  values[lane] = int(lane);
  const unsigned quarter = 0xffu << lane / 8 * 8;
  __syncwarp(quarter);
  int sum = values[lane ^ 1] + values[lane ^ 6];
  __syncwarp(lane < 16 ? 0x0000ffff : 0xffff0000u);
  sum += values[lane ^ 9];
  const unsigned even = 0x55555555u << lane % 2;
  __ballot_sync(even, 1);
  sum += values[lane ^ 16] + values[lane ^ 24] + values[lane ^ 25];  // known through others
  __syncwarp();
  values[lane] = sum;
  __any_sync(0xffffffff, sum);
  out[lane] = values[31 - lane];
}
TEST(Ordered, GroupsOfLanes) {
  int* out = fresh<int>("out", 32);
  expect_silence([&] { groups_kernel<<<1, 32>>>(out); });
}

__global__ void aggregated_kernel(int* counts, int* places, const int* keys) {
  __shared__ int base[32];
  const unsigned lane = threadIdx.x % 32, mine = __match_any_sync(0xffffffff, keys[threadIdx.x]);
  const unsigned leader = unsigned(__ffs(int(mine))) - 1;
  if (lane == leader) base[lane] = atomicAdd(&counts[keys[threadIdx.x]], __popc(mine));
  __syncwarp(mine);
  places[threadIdx.x] = base[leader] + __popc(mine & ((1u << lane) - 1));
}
TEST(Ordered, AtomicsOfAGroupsLeader) {
  int *counts = zeroes<int>("counts", 4), *places = fresh<int>("places", 32),
      *keys = device("keys", std::vector<int>(32, 3));
  expect_silence([&] { aggregated_kernel<<<1, 32>>>(counts, places, keys); });
}

// ---- the same value, structures, reads before an atomic
// ---------------------------------------------------------------------------

struct Padded {
  char kind;
  double weight;
  short rank;
};
__global__ void same_value_kernel(int* found, float* out, const float* in, int n) {
  __shared__ int limit;
  __shared__ bool any;
  __shared__ Padded items[64];
  const int t = threadIdx.x;
  limit = n;  // all of them, the same
  float sum = 0;
  for (int i = 0; i < limit; i++) sum += in[i];
  any = false;
  __syncthreads();
  if (in[t] > 10) any = true, *found = 1;
  items[t].kind = char(t), items[t].weight = sum, items[t].rank = short(t);
  __syncthreads();
  const Padded item = items[63 - t];
  out[blockIdx.x * 64 + t] = any ? float(item.weight) + item.kind : item.rank;
}
TEST(Ordered, TheSameValueFromMany) {
  int* found = zeroes<int>("found", 1);
  float *out = fresh<float>("out", 192), *in = device("in", counting_up<float>(64));
  expect_silence([&] { same_value_kernel<<<3, 64>>>(found, out, in, 12); });
}

__device__ double add_by_cas(double* address, double value) {
  auto* bits = reinterpret_cast<unsigned long long*>(address);
  unsigned long long old = *bits, expected;
  do {
    expected = old;
    old = atomicCAS(bits, expected, __double_as_longlong(value + __longlong_as_double(expected)));
  } while (old != expected);
  return __longlong_as_double(old);
}
__device__ void max_by_cas(float* address, float value) {
  int* bits = reinterpret_cast<int*>(address);
  int old = *bits;
  while (__int_as_float(old) < value) {
    const int expected = old;
    old = atomicCAS(bits, expected, __float_as_int(value));
    if (old == expected) break;
  }
}
__global__ void cas_kernel(double* sum, float* most, const float* in) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  add_by_cas(sum, in[i]);
  max_by_cas(most, in[i] * 37 - in[i] * in[i]);
}
TEST(Ordered, LoopsAroundCas) {
  double* sum = zeroes<double>("sum", 1);
  float *most = zeroes<float>("most", 1), *in = device("in", counting_up<float>(256));
  expect_silence([&] { cas_kernel<<<4, 64>>>(sum, most, in); });
}

__global__ void histogram_kernel(unsigned* counts, const byte* in, int n) {
  __shared__ unsigned local[16];
  const int t = threadIdx.x;
  if (t < 16) local[t] = 0;
  __syncthreads();
  for (int i = blockIdx.x * blockDim.x + t; i < n; i += gridDim.x * blockDim.x)
    atomicAdd(&local[in[i] % 16], 1u);
  __syncthreads();
  if (t < 16 && local[t]) atomicAdd(&counts[t], local[t]);
}
TEST(Ordered, Histogram) {
  unsigned* counts = zeroes<unsigned>("counts", 16);
  byte* in = device("in", counting_up<byte>(2000));
  expect_silence([&] { histogram_kernel<<<5, 64>>>(counts, in, 2000); });
}

__global__ void exchange_kernel(int* slots, volatile int* found, const int* in, int wanted) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  atomicExch(&slots[i % 8], i);  // what was there before does not matter
  for (int k = 0; k < 4; k++) {
    if (*found) return;
    if (in[4 * i + k] == wanted) *found = 1;
  }
}
TEST(Ordered, ExchangesAndAnEarlyEnd) {
  int *slots = fresh<int>("slots", 8), *found = zeroes<int>("found", 1),
      *in = device("in", counting_up<int>(1024));
  expect_silence([&] { exchange_kernel<<<4, 64>>>(slots, found, in, 700); });
}

}  // namespace
