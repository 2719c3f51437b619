// Reads of uninitialised memory, in shared memory and in global memory.
#include "launch_report.h"

namespace {

using byte = unsigned char;

std::string line(int below, int here = __builtin_LINE()) {
  return "uninitialised_test.cu:" + std::to_string(here + below);
}

const std::string kHalfLine = line(7);
template <typename T>
__global__ void half_kernel(T* out, int filled) {
  __shared__ T values[64];
  const int t = threadIdx.x;
  if (t < filled) values[t] = T(t);
  __syncthreads();
  out[t] = values[t];
}
template <typename T>
void expect_half() {
  EXPECT_EQ(report_of([] { half_kernel<T><<<2, 64>>>(fresh<T>("out", 64), 64); }), "");
  expect_report(
      [] { half_kernel<T><<<2, 64>>>(fresh<T>("out", 64), 49); },
      {"reads values[63], shared memory, which is uninitialised: no thread of the block has written it",
       kHalfLine, "30 times, by 30 threads of 2 blocks"});
}
TEST(Unwritten, SharedMemory) {
  expect_half<float>();
  expect_half<double>();
  expect_half<short>();
  expect_half<byte>();
}

// A store of a structure that lies on two pages of shadow memory, of which none was accessed before.
__global__ void points_kernel(float* out, int stored) {
  __shared__ float3 points[128];
  const float3 point{1, 2, 3};
  const int t = threadIdx.x + 42;
  if (t < stored) points[t] = point;
  __syncthreads();
  out[threadIdx.x] = points[t].x + points[t].y + points[t].z;
}
TEST(Unwritten, StructureAcrossPagesOfSharedMemory) {
  EXPECT_EQ(report_of([] { points_kernel<<<1, 1>>>(fresh<float>("out", 1), 128); }), "");
  expect_report([] { points_kernel<<<1, 1>>>(fresh<float>("out", 1), 42); }, {"reads points[42]"});
}

// The next block does not see values that one block wrote.
__global__ void once_kernel(int* out) {
  __shared__ int value;
  extern __shared__ int more[];
  if (blockIdx.x == 0 && threadIdx.x == 0) value = more[3] = 5;
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = value + more[3];
}
TEST(Unwritten, SharedMemoryIsFreshInEveryBlock) {
  int* out = fresh<int>("out", 64);
  expect_report([&] { once_kernel<<<2, 32, 16>>>(out); },
                {"reads value, shared memory", "reads more[3], shared memory",
                 "first block (1, 0, 0), thread (31, 0, 0)"});
  EXPECT_EQ(report_of([&] { once_kernel<<<1, 32, 16>>>(out); }), "");
}

__global__ void copy_kernel(float* out, const float* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) out[i] = in[i];
}
TEST(Unwritten, GlobalMemory) {
  float *a = fresh<float>("a", 100), *b = fresh<float>("b", 100), *in = device("in", counting_up<float>(100));
  copy_kernel<<<2, 64>>>(a, in, 90);
  expect_report([&] { copy_kernel<<<2, 64>>>(b, a, 100); },
                {"reads element 90 of in, which is uninitialised", "10 times", "in, which has 100 elements"});
  EXPECT_EQ(report_of([&] { copy_kernel<<<2, 64>>>(in, b, 100); }), "");  // b counts as written
  emulator::mark_initialised(*emulator::find_allocation(a), a + 90, 40);
  EXPECT_EQ(report_of([&] { copy_kernel<<<2, 64>>>(b, a, 100); }), "");
  emulator::mark_uninitialised(*emulator::find_allocation(a), a + 3, 4);
  expect_report([&] { copy_kernel<<<2, 64>>>(b, a, 100); }, {"reads element 3 of in"});
}

__global__ void add_kernel(float* sums, const float* in) {
  atomicAdd(&sums[threadIdx.x % 4], in[threadIdx.x]);
}
__global__ void take_kernel(int* slots) { atomicExch(&slots[threadIdx.x], 1); }
TEST(Unwritten, SumsThatWereNeverZeroed) {
  float* in = device("in", counting_up<float>(64));
  expect_report([&] { add_kernel<<<1, 64>>>(fresh<float>("sums", 4), in); },
                {"updates element 0 of sums, which is uninitialised"});
  EXPECT_EQ(report_of([&] { add_kernel<<<1, 64>>>(zeroes<float>("sums", 4), in); }), "");
  EXPECT_EQ(report_of([&] { take_kernel<<<1, 64>>>(fresh<int>("slots", 64)); }), "");
}

struct Padded {
  byte kind;
  double weight;
  short rank;
};
__global__ void structures_kernel(Padded* to, Padded* from, int n) {
  const int t = threadIdx.x;
  if (t < n) from[t].kind = byte(t), from[t].weight = t, from[t].rank = short(t);
  to[t] = from[t];
}
__global__ void vectors_kernel(float4* to, float4* from, int n) {
  const int t = threadIdx.x;
  if (t < n) from[t].x = from[t].y = from[t].z = from[t].w = 1;
  to[t] = from[t];
}
TEST(Unwritten, Structures) {
  Padded *from = fresh<Padded>("from", 32), *to = fresh<Padded>("to", 32);
  expect_report([&] { structures_kernel<<<1, 32>>>(to, from, 31); },
                {"of from, which is uninitialised", "thread (31, 0, 0)"});
  EXPECT_EQ(report_of([&] { structures_kernel<<<1, 32>>>(to, from, 32); }), "");
  float4 *wide_from = fresh<float4>("from", 32), *wide_to = fresh<float4>("to", 32);
  expect_report([&] { vectors_kernel<<<1, 32>>>(wide_to, wide_from, 31); },
                {"reads element 31 of from, which is uninitialised"});
  EXPECT_EQ(report_of([&] { vectors_kernel<<<1, 32>>>(wide_to, wide_from, 32); }), "");
}

// Code that is not observed also writes to tensors. Memory that still has the pattern was not written.
template <typename T>
__global__ void sum_kernel(T* sum, const T* in, int n) {
  T total = 0;
  for (int i = 0; i < n; i++) total += in[i];
  *sum = total;
}
template <typename T>
void expect_in_tensor() {
  constexpr int count = 64 / sizeof(T);
  alignas(64) std::uint32_t words[16];
  std::fill_n(words, 16, emulator::kUninitialised);
  T* in = reinterpret_cast<T*>(words);
  auto& allocation = emulator::new_allocation(in, 64, emulator::Space::tensor, "in");
  emulator::mark_uninitialised(allocation, in, 64);
  T* sum = fresh<T>("sum", 1);
  std::fill_n(in, count - 4, T(1));
  const std::string report = report_of([&] { sum_kernel<T><<<1, 1>>>(sum, in, count); });
  EXPECT_NE(report.find("reads element "), std::string::npos) << report;
  EXPECT_NE(report.find(" of in, which is uninitialised"), std::string::npos) << report;
  std::fill_n(in, count, T(1));
  EXPECT_EQ(report_of([&] { sum_kernel<T><<<1, 1>>>(sum, in, count); }), "");
  emulator::forget(allocation);
}
TEST(Unwritten, Tensors) {
  expect_in_tensor<float>();
  expect_in_tensor<double>();
  expect_in_tensor<short>();
  expect_in_tensor<byte>();
}

__global__ void pattern_kernel(std::uint32_t* out) { out[threadIdx.x] = emulator::kUninitialised; }
__global__ void next_kernel(std::uint32_t* out, const std::uint32_t* in) {
  out[threadIdx.x] = in[threadIdx.x];
}
TEST(Unwritten, ATensorThatAKernelFilledWithThePattern) {
  std::uint32_t words[32], *out = fresh<std::uint32_t>("out", 32);
  std::fill_n(words, 32, emulator::kUninitialised);
  auto& allocation = emulator::new_allocation(words, sizeof(words), emulator::Space::tensor, "words");
  emulator::mark_uninitialised(allocation, words, sizeof(words));
  EXPECT_NE(report_of([&] { next_kernel<<<1, 32>>>(out, words); }), "");
  EXPECT_EQ(report_of([&] {
              pattern_kernel<<<1, 32>>>(words);
              next_kernel<<<1, 32>>>(out, words);
            }),
            "");
  emulator::forget(allocation);
}

TEST(Unwritten, MarksAreCopiedAndCounted) {
  auto* from = fresh<byte>("from", 200);
  auto* to = fresh<byte>("to", 200);
  auto &from_memory = *emulator::find_allocation(from), &to_memory = *emulator::find_allocation(to);
  emulator::mark_initialised(from_memory, from + 10, 100);
  EXPECT_EQ(emulator::uninitialised_in(from_memory, from, 200).bytes, 100u);
  EXPECT_EQ(emulator::uninitialised_in(from_memory, from, 200).first, 0u);
  EXPECT_EQ(emulator::uninitialised_in(from_memory, from + 10, 105).first, 100u);
  emulator::copy_initialisation(to_memory, to + 50, from_memory, from, 120);
  EXPECT_EQ(emulator::uninitialised_in(to_memory, to + 50, 120).bytes, 20u);
  EXPECT_EQ(emulator::uninitialised_in(to_memory, to + 60, 100).bytes, 0u);
  EXPECT_EQ(emulator::uninitialised_in(to_memory, to + 60, 150).bytes, 40u);
}

}  // namespace
