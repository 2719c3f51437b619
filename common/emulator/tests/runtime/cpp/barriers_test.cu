// Barriers, masks, refused launches, and the order of threads: wrong kernels are reported, correct kernels
// are not, and they compute the same results in any order.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "feature_list.h"
#include "thread_order.h"

namespace {

class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }

 private:
  const char* name_;
};

struct Told {
  std::string error, warning;  // the exception, and the output on stderr
};

Told told(const std::function<void()>& launch) {
  Told told;
  testing::internal::CaptureStderr();
  try {
    launch();
  } catch (const std::runtime_error& error) {
    told.error = error.what();
  }
  told.warning = testing::internal::GetCapturedStderr();
  return told;
}

void expect_parts(const std::string& text, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(text.find(part), std::string::npos) << text << "\nlacks: " << part;
  if (std::getenv("SHOW")) printf("%s", text.c_str());
}

void expect_error(const std::function<void()>& launch, const std::vector<std::string>& parts) {
  const Told got = told(launch);
  expect_parts(got.error, parts);
  EXPECT_EQ(got.warning, "");
}

void expect_warning(const std::function<void()>& launch, const std::vector<std::string>& parts) {
  const Told got = told(launch);
  expect_parts(got.warning, parts);
  EXPECT_EQ(got.error, "");
}

// In any order.
void expect_silent(const std::function<void()>& launch) {
  for (const char* seed : {"", "1", "2", "3"}) {
    const Setting setting("EMULATOR_SEED", seed);
    const Told got = told(launch);
    EXPECT_EQ(got.error + got.warning, "") << "EMULATOR_SEED=" << seed;
  }
}

// The line `below` lines below the caller, as a message names it.
std::string line(int below, int here = __builtin_LINE()) {
  return "barriers_test.cu:" + std::to_string(here + below) + ":";
}

// The same for a launch, whose column the rewriter has changed.
std::string launch_line(int below, int here = __builtin_LINE()) {
  return "barriers_test.cu:" + std::to_string(here + below) + " ";
}

std::size_t times(const std::string& what, const std::string& text) {
  std::size_t count = 0;
  for (std::size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) count++;
  return count;
}

}  // namespace

// ---- barriers of a block
// --------------------------------------------------------------------------------------------------

const std::string kThen = line(3), kElse = line(5);
__global__ void branches_kernel() {
  if (threadIdx.x < 40) {
    __syncthreads();
  } else {
    __syncthreads();
  }
}
TEST(Barriers, OneInEachBranch) {
  expect_error([] { branches_kernel<<<3, 64>>>(); },
               {"error: threads of one block wait at different barriers, in ", kThen,
                "in block (0, 0, 0):", "40 threads wait at __syncthreads in ", "first thread (0, 0, 0)",
                "24 threads wait at __syncthreads in ", kElse, "first thread (40, 0, 0)",
                "kernel branches_kernel, 3 times"});
}

const std::string kInBranch = line(2), kAfterBranch = line(4);
__global__ void some_kernel(int n) {
  if (int(threadIdx.x) < n) __syncthreads();
  // From here on, the other threads are one barrier ahead.
  __syncthreads();
}
TEST(Barriers, OneThatSomeLeaveOut) {
  const Told got = told([] { some_kernel<<<1, 64>>>(63); });
  expect_parts(got.error, {"63 threads wait at __syncthreads in ", kInBranch,
                           "1 thread waits at __syncthreads in ", kAfterBranch, "first thread (63, 0, 0)"});
  EXPECT_EQ(times("error:", got.error), 1u);  // consequences of the mistake are not reported
  EXPECT_EQ(times("warning:", got.error), 0u);
  expect_silent([] { some_kernel<<<2, 64>>>(64); });
  expect_silent([] { some_kernel<<<2, 64>>>(0); });
}

__global__ void trips_kernel(int* out, int trips) {
  for (int i = 0; i < trips; i++) __syncthreads();
  if (__syncthreads_count(trips > 2)) out[threadIdx.x] = trips;
}
const std::string kOwnLoop = line(2), kOwnCount = line(3);
__global__ void own_trips_kernel(int* out) {
  for (int i = 0; i < int(threadIdx.x) % 2 + 2; i++) __syncthreads();
  if (__syncthreads_count(1)) out[threadIdx.x] = 1;
}

TEST(Barriers, LoopsOfDifferentLength) {
  Memory<int> out(64);
  expect_error([&] { own_trips_kernel<<<1, 64>>>(out.data()); },
               {"different barriers", "32 threads wait at __syncthreads_count in ", kOwnCount,
                "32 threads wait at __syncthreads in ", kOwnLoop});
  expect_silent([&] { trips_kernel<<<2, 64>>>(out.data(), 3); });
}

__global__ void two_on_a_line_kernel() {
  // clang-format off
  if (threadIdx.x == 7) __syncthreads(); else __syncthreads();
  // clang-format on
}
const std::string kTwoOnALine = line(-3);
TEST(Barriers, TwoOnOneLineDifferInTheirColumn) {
  expect_error([] { two_on_a_line_kernel<<<1, 32>>>(); },
               {"31 threads wait at __syncthreads in ", "1 thread waits at __syncthreads in ", kTwoOnALine});
}

const std::string kAfterReturn = line(3);
__global__ void guard_kernel(int n) {
  if (int(blockIdx.x * blockDim.x + threadIdx.x) >= n) return;
  __syncthreads();
  __syncthreads();
}
TEST(Barriers, ReturnBeforeOne) {
  const Told got = told([] { guard_kernel<<<3, 64>>>(100); });
  EXPECT_EQ(got.error, "");
  expect_parts(got.warning,
               {"warning: 28 of 64 threads ended before the __syncthreads that the others reached, in ",
                kAfterReturn, "in block (1, 0, 0), first thread (36, 0, 0)"});
  expect_silent([] { guard_kernel<<<3, 64>>>(128); });  // whole blocks
}
TEST(Barriers, CanBeSwitchedOff) {
  const Setting off("EMULATOR_CHECKS", "-barriers");
  expect_silent([] { guard_kernel<<<3, 64>>>(100); });
  expect_silent([] { branches_kernel<<<3, 64>>>(); });
}

const std::string kSearch = line(4);
__global__ void search_kernel(const int* in, int wanted) {
  for (int i = 0; i < 4; i++) {
    if (in[4 * threadIdx.x + i] == wanted) return;
    __syncthreads();
  }
}
TEST(Barriers, ReturnFromALoop) {
  std::vector<int> values(256);
  for (int i = 0; i < 256; i++) values[i] = i;
  const Memory<int> in(values);
  expect_warning([&] { search_kernel<<<1, 64>>>(in.data(), 42); }, {"1 of 64 threads ended before", kSearch});
  expect_silent([&] { search_kernel<<<1, 64>>>(in.data(), 1000); });
}

__device__ int sum_of_block(int value, int* part) {
  part[threadIdx.x] = value;
  __syncthreads();
  for (unsigned half = blockDim.x / 2; half > 0; half /= 2) {
    if (threadIdx.x < half) part[threadIdx.x] += part[threadIdx.x + half];
    __syncthreads();
  }
  const int sum = part[0];
  __syncthreads();
  return sum;
}
__global__ void uniform_kernel(int* out, int n) {
  __shared__ int part[128];
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  int value = i < n ? i : 0;
  if (blockIdx.x == 0) __syncthreads();                                   // the same for a whole block
  if (blockIdx.x % 2) value = 2 * value + sum_of_block(value, part) * 0;  // one function, two calls
  const int sum = sum_of_block(value, part);
  if (threadIdx.x == 0) out[blockIdx.x] = sum;
  if (i >= n) return;  // after the last barrier
  atomicAdd(out + gridDim.x, 1);
}
TEST(Barriers, RightOnesAreSilent) {
  expect_silent([] {
    Memory<int> out(4);
    uniform_kernel<<<3, 128>>>(out.data(), 300);
    EXPECT_EQ(out.values(),
              (std::vector<int>{127 * 64, 2 * (255 * 128 - 127 * 64), (299 * 150 - 255 * 128), 300}));
  });
}

__global__ void last_block_kernel(int* out, unsigned* done, const int* in) {
  __shared__ bool is_last;
  atomicAdd(out + 1 + blockIdx.x, in[blockIdx.x * blockDim.x + threadIdx.x]);
  __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) is_last = atomicAdd(done, 1u) == gridDim.x - 1;
  __syncthreads();
  if (!is_last) return;  // a whole block
  __syncthreads();
  if (threadIdx.x < gridDim.x) atomicAdd(out, atomicAdd(out + 1 + threadIdx.x, 0));
}
TEST(Barriers, TheLastBlockReduces) {
  expect_silent([] {
    Memory<int> out(11);
    Memory<unsigned> done(1);
    const Memory<int> in(std::vector<int>(640, 2));
    last_block_kernel<<<10, 64>>>(out.data(), done.data(), in.data());
    EXPECT_EQ(out.values()[0], 1280);
  });
}

// ---- launches that cannot continue
// ---------------------------------------------------------------------------------------------

const std::string kStuckWarp = line(3), kStuckBlock = line(4);
__global__ void stuck_kernel(int* out) {
  int value = int(threadIdx.x);
  if (threadIdx.x % 32 < 16) value += __shfl_down_sync(0xffffffff, value, 8);
  __syncthreads();
  out[threadIdx.x] = value;
}
TEST(Deadlocks, AMaskThatNamesLanesOfAnotherBranch) {
  Memory<int> out(64);
  expect_error([&] { stuck_kernel<<<2, 64>>>(out.data()); },
               {"error: __shfl_down_sync waits forever for lanes that wait elsewhere, in ", kStuckWarp,
                "block (0, 0, 0), warp 0 (and 3 more like it):", "lanes 0-15 wait at __shfl_down_sync in ",
                "with mask 0xffffffff, for lanes 16-31", "lanes 16-31 wait at __syncthreads in ", kStuckBlock,
                "for all threads of the block"});
}

const std::string kOwnMask = line(3);
__global__ void own_mask_kernel(int* out) {
  const unsigned lane = threadIdx.x, next = (lane + 1) % 32;
  out[lane] = __shfl_sync(1u << lane | 1u << next, int(lane), int(next));
}
TEST(Deadlocks, MasksThatEachLaneMakesForItself) {
  Memory<int> out(32);
  expect_error(
      [&] { own_mask_kernel<<<1, 32>>>(out.data()); },
      {"error: lanes of one warp call __shfl_sync with different masks, and wait for each other forever",
       kOwnMask, "lane 2 waits at __shfl_sync in ", "with mask 0x0000000c, for lane 3", "and 26 more",
       "all lanes that a mask names must use the same mask in their calls"});
}
const std::string kHalf = line(3);
__global__ void half_mask_kernel(int* out) {
  const unsigned mask = threadIdx.x < 16 ? 0x0001ffffu : 0xffff0000u;  // lane 16 is in both
  out[threadIdx.x] = int(__ballot_sync(mask, 1));
  __syncthreads();
}
TEST(Deadlocks, MasksThatOverlapInOneLane) {
  Memory<int> out(32);
  expect_error([&] { half_mask_kernel<<<1, 32>>>(out.data()); },
               {"__ballot_sync waits forever for lanes that wait elsewhere", kHalf,
                "lanes 0-15 wait at __ballot_sync in ", "with mask 0x0001ffff, for lane 16",
                "lanes 16-31 wait at __syncthreads in "});
}

const std::string kOtherCall = line(3), kThisCall = line(5);
__global__ void two_calls_kernel(int* out) {
  if (threadIdx.x < 8)
    out[threadIdx.x] = int(__ballot_sync(0xffffffff, 1));
  else
    out[threadIdx.x] = __any_sync(0xffffffff, 1);
}
TEST(Deadlocks, DifferentFunctions) {
  Memory<int> out(32);
  expect_error([&] { two_calls_kernel<<<1, 32>>>(out.data()); },
               {"lanes 0-7 wait at __ballot_sync in ", kOtherCall, "for lanes 8-31",
                "lanes 8-31 wait at __any_sync in ", kThisCall, "for lanes 0-7"});
}

const std::string kSpins = line(3), kWaitsForSpinner = line(5);
__global__ void spinner_kernel(volatile int* flag) {
  if (threadIdx.x == 5)
    while (*flag == 0) {
    }
  __syncthreads();
  if (threadIdx.x == 0) *flag = 1;
}
__global__ void grid_barrier_kernel(unsigned* arrived) {
  if (threadIdx.x == 0) {
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < gridDim.x) {
    }
  }
  __syncthreads();
}
TEST(Deadlocks, ABarrierBehindALoopThatNeverEnds) {
  const Setting timeout("EMULATOR_TIMEOUT", "0.2");
  Memory<int> flag(1);
  expect_error([&] { spinner_kernel<<<1, 64>>>(flag.data()); },
               {"thread (5, 0, 0) has not ended after 0.2 seconds",
                kSpins.substr(0, kSpins.size() - 1) + "; meanwhile 63 threads wait at __syncthreads in ",
                kWaitsForSpinner, "first block (0, 0, 0), thread (0, 0, 0)"});
}
TEST(Deadlocks, AGridBarrierWithTooManyBlocks) {
  {
    const Setting timeout("EMULATOR_TIMEOUT", "2");  // enough for four blocks to start on a busy machine
    Memory<unsigned> arrived(1);
    expect_error([&] { grid_barrier_kernel<<<100, 1024>>>(arrived.data()); },
                 {"has not ended after 2 seconds", "96 of 100 blocks have not started"});
  }
  expect_silent([&] {
    Memory<unsigned> enough(1);
    grid_barrier_kernel<<<2, 1024>>>(enough.data());
  });
}

// ---- masks

__device__ int warp_sum(int value, unsigned mask) {
  for (int delta = 16; delta > 0; delta /= 2) value += __shfl_down_sync(mask, value, delta);
  return value;
}
const std::string kWarpSum = line(-3);

__global__ void sum_after_return_kernel(int* out, int n) {
  if (int(threadIdx.x) >= n) return;
  const int sum = warp_sum(1, 0xffffffff);
  if (threadIdx.x % 32 == 0) atomicAdd(out, sum);
}
TEST(Masks, AShuffleFromALaneThatReturned) {
  Memory<int> out(1);
  expect_error([&] { sum_after_return_kernel<<<1, 64>>>(out.data(), 40); },
               {"error: lane 0 reads the value of lane 16 with __shfl_down_sync, but that lane has returned",
                kWarpSum, "the mask is 0xffffffff, and lanes 8-31 have returned", "thread (32, 0, 0)"});
  expect_silent([&] { sum_after_return_kernel<<<1, 64>>>(out.data(), 64); });
  expect_silent([&] { sum_after_return_kernel<<<1, 64>>>(out.data(), 32); });
}
TEST(Masks, AShuffleFromALaneThatDoesNotExist) {
  Memory<int> out(1);
  expect_error([&] { sum_after_return_kernel<<<1, 40>>>(out.data(), 40); },
               {"but that lane does not exist", "lanes 8-31 do not exist", kWarpSum});
}

const std::string kUnrolled = line(5);
__global__ void unrolled_kernel(float* out, int n) {
  if (int(threadIdx.x) >= n) return;
  float value = 1;
  // clang-format off
  value += __shfl_down_sync(0xffffffff, value, 16);
  // clang-format on
  value += __shfl_down_sync(0xffffffff, value, 8);
  if (threadIdx.x == 0) *out = value;
}
const std::string kSwap = line(3);
__global__ void swap_kernel(int* out, int n) {
  if (int(threadIdx.x) >= n) return;
  out[threadIdx.x] = __shfl_xor_sync(0xffffffff, int(threadIdx.x), 1);
}
__global__ void halves_kernel(int* out, int n) {
  if (int(threadIdx.x) >= n) return;
  int value = 1;
  for (int delta = n / 2; delta > 0; delta /= 2) value += __shfl_down_sync(0xffffffff, value, delta);
  if (threadIdx.x == 0) *out = value;
}
const std::string kHalves = line(-3);
TEST(Masks, LanesThatAreGone) {
  Memory<float> sum(1);
  Memory<int> out(32);
  expect_error(
      [&] { unrolled_kernel<<<1, 32>>>(sum.data(), 12); },
      {"lane 0 reads the value of lane 16 with __shfl_down_sync, but that lane has returned", kUnrolled});
  expect_error([&] { swap_kernel<<<1, 32>>>(out.data(), 7); },
               {"lane 6 reads the value of lane 7 with __shfl_xor_sync, but that lane has returned", kSwap});
  // Values of lanes that have returned reach only lanes whose sum is not used.
  expect_warning([&] { halves_kernel<<<1, 32>>>(out.data(), 8); },
                 {"warning: the mask of __shfl_down_sync names lanes that have returned", kHalves,
                  "the mask 0xffffffff names lanes 8-31"});
  EXPECT_EQ(out.values()[0], 8);
}

const std::string kBroadcast = line(4);
__global__ void broadcast_kernel(int* out, int leader) {
  const unsigned mask = __ballot_sync(0xffffffff, threadIdx.x >= 4);
  if (threadIdx.x >= 4) {
    out[threadIdx.x] = __shfl_sync(mask, int(threadIdx.x), leader < 0 ? __ffs(mask) - 1 : leader);
  }
}
TEST(Masks, AShuffleFromALaneThatTheMaskLeavesOut) {
  Memory<int> out(32);
  expect_error(
      [&] { broadcast_kernel<<<1, 32>>>(out.data(), 0); },
      {"error: lane 4 reads the value of lane 0 with __shfl_sync, but the mask does not include that lane",
       kBroadcast, "the mask is 0xfffffff0, lanes 4-31", "28 times, by 28 threads of 1 block"});
  expect_silent([&] { broadcast_kernel<<<1, 32>>>(out.data(), -1); });
  EXPECT_EQ(out.values()[31], 4);
}

const std::string kButterfly = line(3);
__global__ void butterfly_kernel(int* out, unsigned mask, int deltas) {
  if (mask >> threadIdx.x & 1)
    for (int delta = 1; delta < deltas; delta *= 2) out[threadIdx.x] += __shfl_xor_sync(mask, 1, delta);
}
TEST(Masks, AButterflyWiderThanItsMask) {
  expect_error([] { butterfly_kernel<<<1, 32>>>(Memory<int>(32).data(), 0xff, 16); },
               {"lane 0 reads the value of lane 8 with __shfl_xor_sync", kButterfly});
  expect_silent([] { butterfly_kernel<<<1, 32>>>(Memory<int>(32).data(), 0xff, 8); });
}

__global__ void tail_kernel(int* out, int n, int most, bool guarded) {
  const unsigned mask = __ballot_sync(0xffffffff, int(threadIdx.x) < n);
  if (int(threadIdx.x) >= n) return;
  int value = 1;
  for (int delta = most; delta > 0; delta /= 2) {
    const int other = __shfl_down_sync(mask, value, delta);
    if (!guarded || int(threadIdx.x) + delta < n) value += other;
  }
  if (threadIdx.x == 0) *out = value;
}
const std::string kTail = line(-5);
__global__ void tail_scan_kernel(int* out, unsigned mask, bool guarded) {
  const int lane = int(threadIdx.x), first = __ffs(mask) - 1;
  int value = 1;
  if (mask >> lane & 1)
    for (int delta = 1; delta < 32; delta *= 2) {
      const int other = __shfl_up_sync(mask, value, delta);
      if (!guarded || lane - delta >= first) value += other;
    }
  out[lane] = value;
}
const std::string kScan = line(-5);
TEST(Masks, AShuffleThatRunsOffTheEndOfItsMask) {
  Memory<int> out(32);
  expect_error([&] { tail_kernel<<<1, 32>>>(out.data(), 20, 16, false); },
               {"error: lane 4 reads the value of lane 20 with __shfl_down_sync, but the mask does not "
                "include that lane",
                "the mask is 0x000fffff, lanes 0-19", kTail, "12 times, by 12 threads"});
  EXPECT_NE(out.values()[0], 20);
  expect_error(
      [&] { tail_scan_kernel<<<1, 32>>>(out.data(), 0xffffff00u, false); },
      {"lane 8 reads the value of lane 7 with __shfl_up_sync, but the mask does not include that lane",
       kScan});
}
TEST(Masks, ValuesThatAreThrownAwayAreSilent) {
  expect_silent([] {
    Memory<int> out(32);
    tail_kernel<<<1, 32>>>(out.data(), 20, 16, true);
    EXPECT_EQ(out.values()[0], 20);
    tail_kernel<<<1, 32>>>(out.data(), 16, 8, false);
    EXPECT_EQ(out.values()[0], 16);
    tail_kernel<<<1, 32>>>(out.data(), 32, 16, false);
    EXPECT_EQ(out.values()[0], 32);
    tail_scan_kernel<<<1, 32>>>(out.data(), 0xffffff00u, true);
    EXPECT_EQ(out.values()[31], 24);
  });
}

__global__ void vote_kernel(unsigned* out, int n) {
  if (int(threadIdx.x) >= n) return;
  out[threadIdx.x] = __ballot_sync(0xffffffff, threadIdx.x % 2);
}
const std::string kVote = line(-2);
TEST(Masks, AVoteOfLanesThatReturned) {
  Memory<unsigned> out(64);
  expect_warning([&] { vote_kernel<<<1, 64>>>(out.data(), 44); },
                 {"warning: the mask of __ballot_sync names lanes that have returned", kVote,
                  "block (0, 0, 0), warp 1: the mask 0xffffffff names lanes 12-31"});
  EXPECT_EQ(out.values()[40], 0xaaau);
  expect_warning([&] { vote_kernel<<<1, 48>>>(out.data(), 44); },
                 {"the mask 0xffffffff names lanes 12-15", kVote});
  expect_silent([&] { vote_kernel<<<1, 44>>>(out.data(), 44); });
  expect_silent([&] { vote_kernel<<<1, 64>>>(out.data(), 64); });
}

const std::string kMin = line(4), kMax = line(6);
__global__ void two_shuffles_kernel(int* out) {
  int value = int(threadIdx.x);
  if (threadIdx.x % 2)
    value = max(value, __shfl_xor_sync(0xffffffff, value, 1));
  else
    value = min(value, __shfl_xor_sync(0xffffffff, value, 1));
  out[threadIdx.x] = value;
}
__global__ void two_syncwarps_kernel(int* out) {
  __shared__ int values[32];
  values[threadIdx.x] = int(threadIdx.x);
  if (threadIdx.x % 2)
    __syncwarp();
  else
    __syncwarp();
  out[threadIdx.x] = values[31 - threadIdx.x];
}
TEST(Masks, LanesAtDifferentCalls) {
  Memory<int> out(32);
  expect_error([&] { two_shuffles_kernel<<<1, 32>>>(out.data()); },
               {"error: lanes of one warp meet at different calls of __shfl_xor_sync", kMax,
                "lanes 0, 2, 4, 6, ... 30 in ", kMin, "lanes 1, 3, 5, 7, ... 31 in "});
  expect_silent([&] { two_syncwarps_kernel<<<1, 32>>>(out.data()); });
}

const std::string kOther = line(1);
__global__ void half_kernel(int* out) { out[threadIdx.x] = __shfl_sync(0x0000ffff, int(threadIdx.x), 0); }
TEST(Masks, AMaskWithoutTheCaller) {
  Memory<int> out(32);
  expect_error([&] { half_kernel<<<1, 32>>>(out.data()); },
               {"error: lane 16 calls __shfl_sync with a mask that does not name this lane", kOther,
                "the mask is 0x0000ffff, lanes 0-15", "16 times, by 16 threads of 1 block"});
  EXPECT_EQ(out.values()[15], 0);  // the other lanes continue
  const Setting off("EMULATOR_CHECKS", "-barriers");
  EXPECT_NE(told([&] { half_kernel<<<1, 32>>>(out.data()); }).error.find("does not name its own lane 16"),
            std::string::npos);
  EXPECT_NE(told([&] {
              stuck_kernel<<<1, 64>>>(Memory<int>(64).data());
            }).error.find("cannot continue: its threads wait"),
            std::string::npos);
}

// Tiles of eight lanes, each with its own mask.
__global__ void tiles_kernel(int* out) {
  const int lane = int(threadIdx.x) % 32, tile = lane / 8;
  const unsigned mask = 0xffu << 8 * tile;
  int sum = lane, scan = 1;
  if (tile != 2) {
    for (int delta = 4; delta > 0; delta /= 2) sum += __shfl_down_sync(mask, sum, delta);  // no width
    for (int delta = 1; delta < 8; delta *= 2) {
      const int other = __shfl_up_sync(mask, scan, delta, 8);
      if (lane % 8 >= delta) scan += other;
    }
    sum = __shfl_sync(mask, sum, 8 * tile);
    __syncwarp(mask);
  }
  __syncthreads();
  out[threadIdx.x] = 100 * sum + scan;
}
TEST(Masks, TilesOfAWarpAreSilent) {
  expect_silent([] {
    Memory<int> out(64);
    tiles_kernel<<<1, 64>>>(out.data());
    for (int i = 0; i < 64; i++) {
      const int lane = i % 32, tile = lane / 8, sum = tile == 2 ? lane : 64 * tile + 28;
      ASSERT_EQ(out.values()[i], 100 * sum + (tile == 2 ? 1 : lane % 8 + 1)) << i;
    }
  });
}

// A partial warp, with masks of the lanes that exist.
__global__ void tail_warp_kernel(int* out, int n) {
  const unsigned left = blockDim.x - threadIdx.x / 32 * 32, all = left >= 32 ? ~0u : (1u << left) - 1;
  const unsigned odd = __ballot_sync(all, threadIdx.x % 2);
  __syncwarp();
  int count = 0;
  if (threadIdx.x % 2) count = __popc(__ballot_sync(odd, 1));
  const unsigned inside = __ballot_sync(all, int(threadIdx.x) < n);
  if (int(threadIdx.x) >= n) return;
  out[threadIdx.x] = 100 * count + __popc(__match_any_sync(inside, threadIdx.x % 4));
  __syncwarp();
}
TEST(Masks, MadeByBallotsInATailWarpAreSilent) {
  expect_silent([] {
    Memory<int> out(44);
    tail_warp_kernel<<<1, 44>>>(out.data(), 40);
    EXPECT_EQ(out.values()[31], 1608);
    EXPECT_EQ(out.values()[36], 2);
    EXPECT_EQ(out.values()[37], 602);
    EXPECT_EQ(out.values()[40], 0);
  });
}

// Lanes that pass a test reserve places with one atomic per warp.
__global__ void filter_kernel(int* out, int* count, const int* in) {
  const int value = in[threadIdx.x], lane = int(threadIdx.x) % 32;
  if (value % 3 == 0) {
    const unsigned mask = __activemask();
    const int leader = __ffs(mask) - 1;
    int place = 0;
    if (lane == leader) place = atomicAdd(count, __popc(mask));
    place = __shfl_sync(mask, place, leader) + __popc(mask & ((1u << lane) - 1));
    out[place] = value;
  }
  __syncthreads();
  if (threadIdx.x == 0) out[*count] = __popc(__activemask());
}
TEST(Masks, OfTheLanesInABranchAreSilent) {
  std::vector<int> values(64);
  for (int i = 0; i < 64; i++) values[i] = i;
  expect_silent([&] {
    const Memory<int> in(values);
    Memory<int> out(64), count(1);
    filter_kernel<<<1, 64>>>(out.data(), count.data(), in.data());
    EXPECT_EQ(count.values()[0], 22);
    const std::vector<int> kept = out.values();
    EXPECT_EQ(std::set<int>(kept.begin(), kept.begin() + 22).size(), 22u);
    for (int i = 0; i < 22; i++) EXPECT_EQ(kept[i] % 3, 0);
    EXPECT_EQ(kept[22], 1);
  });
}

// ---- refused launches
// -------------------------------------------------------------------------------------------------------

__global__ void fill_kernel(int* out, int value) {
  extern __shared__ int dynamic[];
  dynamic[0] = value;
  out[blockIdx.x * blockDim.x + threadIdx.x] = dynamic[0];
}
template <int bytes>
__global__ void large_kernel(int* out) {
  __shared__ char part[bytes];
  extern __shared__ char more[];
  part[0] = more[0] = 1;
  out[0] = part[0] + more[0];
}

TEST(Launches, ARefusalIsExplainedWhenTheHostAsks) {
  Memory<int> out(1024);
  const auto refused = [&](dim3 grid, dim3 block, std::size_t shared, const std::string& why) {
    expect_warning(
        [&] {
          fill_kernel<<<grid, block, shared>>>(out.data(), 1);
          EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
        },
        {"warning: the launch of fill_kernel is refused: " + why + ", in ", launch_line(-3), "(launch)"});
  };
  refused(1, 2048, 4, "it asks for 2048 threads per block, (2048, 1, 1); the device allows 1024");
  refused(1, dim3(32, 32, 2), 4, "it asks for 2048 threads per block, (32, 32, 2); the device allows 1024");
  refused(1, dim3(1, 1, 65), 4, "block.z is 65, at most 64");
  refused(1, 0, 4, "block (0, 1, 1) is empty: was a size zero?");
  refused(0, 64, 4, "grid (0, 1, 1) is empty: was a size zero?");
  refused(dim3(1, 70000), 64, 4, "grid.y is 70000, at most 65535");
  refused(-1, 64, 4,
          "grid.x is 4294967295, at most 2147483647 (a negative number, or one too large for 32 bits?)");
  refused(1, 64, 50000,
          "it asks for 50000 bytes of dynamic shared memory; a block may have 49152, and after "
          "cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, ...) up to 232448");
  expect_silent([&] {
    fill_kernel<<<1, 1024, 4>>>(out.data(), 1);
    fill_kernel<<<dim3(1, 65535), 1, 4>>>(out.data(), 1);
    fill_kernel<<<1, dim3(1, 1, 64), 48 << 10>>>(out.data(), 1);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  });
}
TEST(Launches, StaticAndDynamicSharedMemoryTogether) {
  Memory<int> out(1);
  expect_warning(
      [&] {
        large_kernel<40000><<<1, 1, 9153>>>(out.data());
        EXPECT_EQ(cudaPeekAtLastError(), cudaErrorInvalidValue);
        EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
      },
      {"it needs 40000 bytes of static and 9153 of dynamic shared memory, 49153 together; a block may have "
       "49152",
       launch_line(-6)});
  expect_silent([&] { large_kernel<40000><<<1, 1, 9152>>>(out.data()); });
}
TEST(Launches, ARefusalThatNobodyAskedFor) {
  Memory<int> out(64);
  const auto twice = [&] {
    for (int i = 0; i < 2; i++) fill_kernel<<<i, 64, 4>>>(out.data(), 7);
  };
  expect_error(twice, {"error: the launch of fill_kernel is refused: grid (0, 1, 1) is empty",
                       launch_line(-3), "cudaGetLastError was not called: the kernel did not run"});
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(out.values()[0], 0);
  expect_silent([&] { fill_kernel<<<1, 64, 4>>>(out.data(), 7); });
  EXPECT_EQ(out.values()[63], 7);
}
TEST(Launches, ARefusalWithTheCheckSwitchedOff) {
  const Setting off("EMULATOR_CHECKS", "-launch");
  Memory<int> out(64);
  expect_silent([&] {
    fill_kernel<<<0, 64, 4>>>(out.data(), 7);
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  });
}

// ---- the order of blocks and threads
// -----------------------------------------------------------------------------------------

TEST(Seeds, EachNumberComesOnce) {
  for (const char* seed : {"", "0", "17", "18446744073709551615"}) {
    const Setting setting("EMULATOR_SEED", seed);
    emulator::read_seed();
    for (std::uint64_t size : {1, 2, 3, 31, 32, 100, 1024, 65537}) {
      std::vector<bool> seen(size);
      std::uint64_t in_place = 0;
      for (std::uint64_t n = 0; n < size; n++) {
        const std::uint64_t number = emulator::shuffled(n, size, 5);
        ASSERT_LT(number, size);
        ASSERT_FALSE(seen[number]);
        seen[number] = true;
        in_place += number == n;
      }
      if (!*seed) EXPECT_EQ(in_place, size);
      if (*seed && size >= 31) EXPECT_LT(in_place, 10u) << seed << " " << size;
    }
    EXPECT_LT(emulator::shuffled(std::uint64_t(1) << 60, (std::uint64_t(1) << 60) + 1, 0),
              (std::uint64_t(1) << 60) + 1);
  }
  emulator::read_seed();
}

// When each thread of each block starts, and when it continues after a barrier.
__global__ void order_kernel(int* started, int* went_on, int* clock) {
  const int i = int(blockIdx.x * blockDim.x + threadIdx.x);
  started[i] = atomicAdd(clock, 1);
  __syncthreads();
  went_on[i] = atomicAdd(clock, 1);
}
std::vector<int> order(const char* seed) {
  const Setting setting("EMULATOR_SEED", seed);
  Memory<int> started(256), went_on(256), clock(1);
  order_kernel<<<4, 64>>>(started.data(), went_on.data(), clock.data());
  std::vector<int> all = started.values(), after = went_on.values();
  all.insert(all.end(), after.begin(), after.end());
  return all;
}
TEST(Seeds, DecideTheOrder) {
  const std::vector<int> plain = order(""), one = order("1"), two = order("2");
  EXPECT_EQ(plain[0], 0);
  EXPECT_EQ(plain[255], 3 * 128 + 63);
  EXPECT_TRUE(std::is_sorted(plain.begin(), plain.begin() + 256));
  EXPECT_EQ(order("1"), one);
  EXPECT_NE(one, two);
  for (const auto& shuffled : {one, two}) {
    EXPECT_EQ(std::set<int>(shuffled.begin(), shuffled.end()).size(), 512u);
    const auto first = [&](int block) { return shuffled[64 * block] / 128; };
    EXPECT_EQ((std::set<int>{first(0), first(1), first(2), first(3)}).size(), 4u);
    EXPECT_FALSE(std::is_sorted(shuffled.begin() + 64, shuffled.begin() + 128));  // of a block
    EXPECT_FALSE(
        std::is_sorted(shuffled.begin() + 256, shuffled.begin() + 288));  // of a warp, after a barrier
    EXPECT_NE(std::vector<int>(shuffled.begin(), shuffled.begin() + 64),
              std::vector<int>(shuffled.begin() + 64, shuffled.begin() + 128));
  }
}
TEST(Seeds, AreNamedInReports) {
  const Setting seed("EMULATOR_SEED", "17");
  expect_error([] { branches_kernel<<<3, 64>>>(); }, {"order shuffled with EMULATOR_SEED=17"});
  expect_warning([] { guard_kernel<<<3, 64>>>(100); }, {"order shuffled with EMULATOR_SEED=17"});
  const Setting random("EMULATOR_SEED", "random");
  const std::string text = told([] { branches_kernel<<<3, 64>>>(); }).error;
  const std::size_t at = text.find("EMULATOR_SEED=");
  ASSERT_NE(at, std::string::npos) << text;
  EXPECT_NE(text.find_first_of("0123456789", at), std::string::npos);
}
TEST(Seeds, MustBeNumbers) {
  for (const char* wrong : {"one", "-1", "3x", "99999999999999999999"}) {
    const Setting seed("EMULATOR_SEED", wrong);
    expect_error([] { branches_kernel<<<1, 1>>>(); }, {"EMULATOR_SEED is \"" + std::string(wrong) + "\""});
  }
}
TEST(Seeds, RightKernelsGiveTheSameValuesInAnyOrder) {
  for (const auto& [name, feature] : features()) {
    const Values expected = feature();
    for (const char* number : {"1", "2", "3", "4"}) {
      const Setting seed("EMULATOR_SEED", number);
      EXPECT_EQ(feature().bits, expected.bits) << name << ", EMULATOR_SEED=" << number;
    }
  }
}
