// Wrong kernels: the reports name the element, the threads and the lines of a race.
#include "launch_report.h"

namespace {

using byte = unsigned char;

std::string line(int below, int here = __builtin_LINE()) {
  return "races_test.cu:" + std::to_string(here + below);
}

// ---- within a block
// -----------------------------------------------------------------------------------------------

const std::string kSumLine = line(8);
template <typename T>
__global__ void sum_kernel(T* sums, const T* in, int forgotten) {
  __shared__ T partial[128];
  const int t = threadIdx.x;
  partial[t] = in[blockIdx.x * 128 + t];
  if (forgotten != 128) __syncthreads();
  for (int half = 64; half > 0; half /= 2) {
    if (t < half) partial[t] += partial[t + half];
    if (forgotten != half) __syncthreads();
  }
  if (t == 0) sums[blockIdx.x] = partial[0];
}
template <typename T>
void expect_sum_races() {
  T *in = device("in", counting_up<T>(512)), *sums = fresh<T>("sums", 4);
  expect_report([&] { sum_kernel<T><<<4, 128>>>(sums, in, 64); },
                {"race on partial[32], shared memory, in ", kSumLine + " (races)",
                 "thread (32, 0, 0) writes it, thread (0, 0, 0) read it in ",
                 "there is no __syncthreads between", "threads of 4 blocks; first block (0, 0, 0)"});
  expect_report([&] { sum_kernel<T><<<4, 128>>>(sums, in, 8); },
                {"race on partial[4]", kSumLine, "there is no __syncwarp or __syncthreads between"});
  const std::string at_first = report_of([&] { sum_kernel<T><<<4, 128>>>(sums, in, 128); });
  EXPECT_NE(at_first.find("race on partial[64]"), std::string::npos) << at_first;
  EXPECT_EQ(at_first.find("(initialisation)"), std::string::npos) << at_first;  // one mistake, one finding
}
TEST(Races, ABarrierForgottenInASum) {
  expect_sum_races<float>();
  expect_sum_races<double>();
  expect_sum_races<short>();
  expect_sum_races<byte>();
}

__global__ void transpose_kernel(float* out, const float* in, bool has_barrier) {
  __shared__ float tile[16][17];
  const int x = threadIdx.x, y = threadIdx.y;
  tile[y][x] = in[16 * y + x];
  if (has_barrier) __syncthreads();
  out[16 * y + x] = tile[x][y];
}
TEST(Races, ABarrierForgottenInATranspose) {
  float *in = device("in", counting_up<float>(256)), *out = fresh<float>("out", 256);
  expect_report([&] { transpose_kernel<<<1, dim3(16, 16)>>>(out, in, false); },
                {"race on tile[1][0], shared memory, in ", line(-7),
                 "thread (0, 1, 0) writes it, thread (1, 0, 0) read it in ", line(-6)});
  EXPECT_EQ(report_of([&] { transpose_kernel<<<1, dim3(16, 16)>>>(out, in, true); }), "");
}

// The buffer that is being filled is still being read: the barrier orders only the other direction.
const std::string kRefillLine = line(7);
__global__ void refill_kernel(float* out, const float* in, int steps) {
  __shared__ float buffer[64];
  const int t = threadIdx.x;
  float sum = 0;
  for (int step = 0; step < steps; step++) {
    static_cast<void>(step);
    buffer[t] = in[step * 64 + t];
    __syncthreads();
    sum += buffer[63 - t];
  }
  out[t] = sum;
}
TEST(Races, ABufferRefilledTooEarly) {
  float *in = device("in", counting_up<float>(256)), *out = fresh<float>("out", 64);
  expect_report([&] { refill_kernel<<<1, 64>>>(out, in, 4); },
                {"race on buffer[", kRefillLine, "there is no __syncthreads between"});
}

const std::string kShiftLine = line(3);
__global__ void shift_kernel(float* data, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i + 1 < n) data[i] = data[i] + data[i + 1];
}
TEST(Races, InPlace) {
  float* data = device("data", counting_up<float>(200));
  expect_report(
      [&] { shift_kernel<<<1, 200>>>(data, 200); },
      {"race on element 1 of data", kShiftLine, "thread (1, 0, 0) writes it, thread (0, 0, 0) read it in "});
  const std::string blocks = report_of([&] { shift_kernel<<<200, 1>>>(data, 200); });
  EXPECT_NE(blocks.find(
                "block (1, 0, 0), thread (0, 0, 0) writes it, block (0, 0, 0), thread (0, 0, 0) read it in "),
            std::string::npos)
      << blocks;
  EXPECT_NE(blocks.find("blocks run in any order"), std::string::npos) << blocks;
}

__global__ void winner_kernel(int* out) {
  __shared__ int winner;
  winner = int(threadIdx.x);  // the result depends on the order
  __syncthreads();
  out[blockIdx.x] = winner;
}
TEST(Races, ManyWritersOfOneWord) {
  int* out = fresh<int>("out", 2);
  expect_report([&] { winner_kernel<<<1, 64>>>(out); },
                {"race on winner, shared memory", "thread (1, 0, 0) writes it, thread (0, 0, 0) wrote it"});
}

template <typename T>
__global__ void overlap_kernel(T* data) {
  data[threadIdx.x] = T(threadIdx.x);
  if (threadIdx.x % 2 == 0) data[threadIdx.x + 1] = T(100);
}
TEST(Races, NeighboursInOneWord) {
  expect_report([] { overlap_kernel<<<1, 32>>>(fresh<byte>("data", 32)); }, {"race on element 1 of data"});
  expect_report([] { overlap_kernel<<<1, 32>>>(fresh<short>("data", 32)); }, {"race on element 1 of data"});
  expect_report([] { overlap_kernel<<<1, 32>>>(fresh<double>("data", 32)); }, {"race on element 1 of data"});
}

// ---- within a warp
// ------------------------------------------------------------------------------------------------

const std::string kLanesLine = line(9);
template <typename Pointer>
__global__ void lanes_kernel(float* sum, const float* in, bool has_barriers) {
  __shared__ float values[64];
  const int t = threadIdx.x;
  values[t] = in[t], values[t + 32] = in[t + 32];
  __syncwarp();
  const Pointer v = values;
  for (int half = 32; half > 0; half /= 2) {
    v[t] = v[t] + v[t + half];
    if (has_barriers) __syncwarp();
  }
  if (t == 0) sum[0] = v[0];
}
TEST(Races, LanesThatDoNotKeepStep) {
  float *in = device("in", counting_up<float>(64)), *sum = fresh<float>("sum", 1);
  expect_report([&] { lanes_kernel<float*><<<1, 32>>>(sum, in, false); },
                {"race on values[1]", kLanesLine, "there is no __syncwarp or __syncthreads between"});
  expect_report([&] { lanes_kernel<volatile float*><<<1, 32>>>(sum, in, false); },
                {"race on values[", "volatile does not keep the lanes of a warp in step"});
}

const std::string kFirstStep = line(7), kSecondStep = line(8);
__global__ void steps_kernel(float* sum, const float* in) {
  __shared__ float values[64];
  const int t = threadIdx.x;
  values[t] = in[t], values[t + 32] = in[t + 32];
  __syncwarp();
  volatile float* v = values;
  v[t] = v[t] + v[t + 32];
  v[t] = v[t] + v[t + 16];
  v[t] = v[t] + v[t + 8];
  v[t] = v[t] + v[t + 4];
  v[t] = v[t] + v[t + 2];
  v[t] = v[t] + v[t + 1];
  if (t == 0) sum[0] = v[0];
}
TEST(Races, ManyStepsWithoutASyncwarpAreOneMistake) {
  float *in = device("in", counting_up<float>(64)), *sum = fresh<float>("sum", 1);
  const std::string report = report_of([&] { steps_kernel<<<1, 32>>>(sum, in); });
  EXPECT_NE(report.find(kFirstStep), std::string::npos) << report;
  EXPECT_NE(report.find(kSecondStep), std::string::npos) << report;
  EXPECT_EQ(report.find("error", report.find("error") + 1), std::string::npos) << report;
}

__global__ void mask_kernel(int* out, unsigned mask) {
  __shared__ int values[32];
  values[threadIdx.x] = int(threadIdx.x);
  if (mask >> threadIdx.x & 1) __syncwarp(mask);
  out[threadIdx.x] = values[(threadIdx.x + 1) % 32];
}
TEST(Races, AMaskWithoutTheOtherLane) {
  int* out = fresh<int>("out", 32);
  EXPECT_EQ(report_of([&] { mask_kernel<<<1, 32>>>(out, 0xffffffff); }), "");
  expect_report([&] { mask_kernel<<<1, 32>>>(out, 0x7fffffff); }, {"race on values[31]"});
  expect_report([&] { mask_kernel<<<1, 32>>>(out, 0x0000ffff); }, {"race on values[16]"});
  for (const char* seed : {"1", "2", "3"}) {  // the others did not wait for lanes that have returned, either
    setenv("EMULATOR_SEED", seed, 1);
    expect_report([&] { mask_kernel<<<1, 32>>>(out, 0x0000ffff); }, {"race on values[", "17 times"});
  }
  unsetenv("EMULATOR_SEED");
}

// ---- atomics
// ------------------------------------------------------------------------------------------------------

const std::string kCountLine = line(4);
__global__ void count_kernel(int* counts, const int* in, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= n) return;
  counts[in[i] % 8]++;
}
TEST(Races, AHistogramWithoutAtomics) {
  int *in = device("in", counting_up<int>(64)), *counts = zeroes<int>("counts", 8);
  expect_report([&] { count_kernel<<<2, 32>>>(counts, in, 64); },
                {"race on element ", " of counts", kCountLine});
}

__global__ void mixed_kernel(int* out, bool zeroes_late, bool reads_early) {
  __shared__ int total;
  if (threadIdx.x == (zeroes_late ? 40 : 0)) total = 0;
  if (!zeroes_late) __syncthreads();
  atomicAdd(&total, int(threadIdx.x));
  if (!reads_early) __syncthreads();
  if (threadIdx.x == 0) out[0] = total;
}
TEST(Races, PlainAccessesBesideAtomics) {
  int* out = fresh<int>("out", 1);
  EXPECT_EQ(report_of([&] { mixed_kernel<<<1, 64>>>(out, false, false); }), "");
  expect_report([&] { mixed_kernel<<<1, 64>>>(out, true, false); },
                {"race on total, shared memory", "thread (40, 0, 0) writes it, ", " updated it atomically"});
  expect_report([&] { mixed_kernel<<<1, 64>>>(out, false, true); },
                {"race on total", "thread (1, 0, 0) updates it atomically, thread (0, 0, 0) read it"});
}

// ---- between blocks
// -----------------------------------------------------------------------------------------------

enum Mistake { none, no_fence, fence_too_early, fence_by_one, no_atomic };

const std::string kPartLine = line(5);
__global__ void last_block_kernel(float* sum, float* parts, unsigned* arrived, Mistake mistake) {
  __shared__ bool is_last;
  if (mistake == fence_too_early) __threadfence();
  if (mistake != none) static_cast<void>(0);
  parts[blockIdx.x * blockDim.x + threadIdx.x] = float(blockIdx.x + 1);
  if (mistake == fence_by_one && threadIdx.x == 0) __threadfence();  // orders only this thread's writes
  if (mistake == none) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (mistake == no_atomic) __threadfence();
    is_last = (mistake == no_atomic ? (*arrived)++ : atomicAdd(arrived, 1u)) == gridDim.x - 1;
  }
  __syncthreads();
  if (!is_last) return;
  float total = 0;
  for (unsigned block = 0; block < gridDim.x; block++)
    total += parts[block * blockDim.x + (threadIdx.x + 1) % blockDim.x];
  sum[threadIdx.x] = total;
}
TEST(Races, TheLastBlockComesTooEarly) {
  const auto report = [](Mistake mistake) {
    float *parts = fresh<float>("parts", 20 * 64), *sum = fresh<float>("sum", 64);
    unsigned* arrived = zeroes<unsigned>("arrived", 1);
    return report_of([&] { last_block_kernel<<<20, 64>>>(sum, parts, arrived, mistake); });
  };
  EXPECT_EQ(report(none), "");
  for (Mistake mistake : {no_fence, fence_too_early, fence_by_one, no_atomic}) {
    const std::string text = report(mistake);
    EXPECT_NE(text.find("of parts, in "), std::string::npos) << mistake << text;
    EXPECT_NE(text.find("only an atomic after a __threadfence"), std::string::npos) << text;
  }
  EXPECT_NE(report(no_atomic).find("race on element 0 of arrived"), std::string::npos);
  EXPECT_EQ(report(no_fence).find("of arrived"), std::string::npos);
}

__global__ void rounds_kernel(int* a, int* b, unsigned* arrived, int rounds, bool has_fence,
                              bool has_barrier) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 1; round <= rounds; round++) {
    b[i] = a[(i + blockDim.x) % n] + 1;
    if (has_barrier) __syncthreads();
    if (threadIdx.x == 0) {
      if (has_fence) __threadfence();
      atomicAdd(arrived, 1u);
      while (atomicAdd(arrived, 0u) < unsigned(round) * gridDim.x) {
      }
    }
    __syncthreads();
    int* const swap = a;
    a = b, b = swap;
  }
}
TEST(Races, AtABarrierOfTheGrid) {
  const auto report = [](bool has_fence, bool has_barrier) {
    int *a = device("a", counting_up<int>(128)), *b = fresh<int>("b", 128);
    unsigned* arrived = zeroes<unsigned>("arrived", 1);
    return report_of([&] { rounds_kernel<<<4, 32>>>(a, b, arrived, 3, has_fence, has_barrier); });
  };
  EXPECT_EQ(report(true, true), "");
  EXPECT_NE(report(false, true).find("race on element "), std::string::npos);
  EXPECT_NE(report(true, false).find("race on element "), std::string::npos);
}

__global__ void lock_kernel(int* mutex, int* total, bool locks, bool has_fences) {
  if (threadIdx.x != 0) return;
  if (locks)
    while (atomicCAS(mutex, 0, 1) != 0) {
    }
  if (has_fences) __threadfence();
  *total += int(blockIdx.x) + 1;
  if (has_fences) __threadfence();
  if (locks) atomicExch(mutex, 0);
}
TEST(Races, WithALock) {
  const auto report = [](bool locks, bool has_fences) {
    int *mutex = zeroes<int>("mutex", 1), *total = zeroes<int>("total", 1);
    return report_of([&] { lock_kernel<<<8, 32>>>(mutex, total, locks, has_fences); });
  };
  EXPECT_EQ(report(true, true), "");
  EXPECT_NE(report(true, false).find("race on element 0 of total"), std::string::npos);
  EXPECT_NE(report(false, true).find("race on element 0 of total"), std::string::npos);
}

// A consumer that does not wait; a flag without a fence; a flag that is neither volatile nor atomic.
template <typename Flag>
__global__ void flag_kernel(int* out, bool waits, bool has_fence) {
  __shared__ int data[32];
  __shared__ Flag ready;
  if (threadIdx.x == 0) ready = 0;
  __syncthreads();
  const unsigned lane = threadIdx.x % 32;
  if (threadIdx.x < 32) {
    data[lane] = int(lane);
    if (has_fence) __threadfence_block();
    __syncwarp();
    if (lane == 0) ready = 1;
  } else {
    if (waits)
      while (ready == 0 && atomicAdd(out + 32, 1) < 100000) {
      }
    out[lane] = data[31 - lane];
  }
}
TEST(Races, FromWarpToWarp) {
  int* out = zeroes<int>("out", 33);
  EXPECT_EQ(report_of([&] { flag_kernel<volatile int><<<1, 64>>>(out, true, true); }), "");
  expect_report([&] { flag_kernel<volatile int><<<1, 64>>>(out, true, false); },
                {"race on data[", "there is no __syncthreads between"});
  expect_report([&] { flag_kernel<volatile int><<<1, 64>>>(out, false, true); }, {"race on data["});
  expect_report([&] { flag_kernel<int><<<1, 64>>>(out, true, true); }, {"race on ready"});
}

// Rows of the output that overlap: the stride is too small.
__global__ void rows_kernel(float* out, int width, int stride) {
  out[blockIdx.x * stride + threadIdx.x] = float(blockIdx.x * width + threadIdx.x);
}
TEST(Races, OverlappingRows) {
  float* out = fresh<float>("out", 128);
  EXPECT_EQ(report_of([&] { rows_kernel<<<4, 32>>>(out, 32, 32); }), "");
  expect_report([&] { rows_kernel<<<4, 32>>>(out, 32, 31); },
                {"race on element 31 of out",
                 "block (1, 0, 0), thread (0, 0, 0) writes it, block (0, 0, 0), thread (31, 0, 0) wrote it",
                 "out, which has 128 elements"});
}

// ---- settings
// -----------------------------------------------------------------------------------------------------

TEST(Races, AreSoughtOnlyWhenWanted) {
  int* out = fresh<int>("out", 1);
  setenv("EMULATOR_CHECKS", "-races", 1);
  EXPECT_EQ(report_of([&] { winner_kernel<<<1, 64>>>(out); }), "");
  setenv("EMULATOR_CHECKS", "races", 1);
  EXPECT_NE(report_of([&] { winner_kernel<<<1, 64>>>(out); }), "");
  unsetenv("EMULATOR_CHECKS");
}

}  // namespace
