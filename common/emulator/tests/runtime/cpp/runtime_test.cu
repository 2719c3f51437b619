// The emulator itself: reports on failing kernels, launches that a GPU would refuse, and the state
// afterwards.
#include <cuda_runtime.h>
#include <gtest/gtest.h>
#include <signal.h>

#include <atomic>
#include <cassert>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "fiber.h"

namespace {

// The message of the exception of a launch; empty if it raises none.
template <typename Launch>
std::string failure_of(Launch launch) {
  try {
    launch();
  } catch (const std::runtime_error& error) {
    return error.what();
  }
  return "";
}

// Sets an environment variable until the end of the scope.
class Setting {
 public:
  Setting(const char* name, const char* value) : name_(name) { setenv(name, value, 1); }
  ~Setting() { unsetenv(name_); }

 private:
  const char* name_;
};

__global__ void fill_kernel(int* out, int value) { out[blockIdx.x * blockDim.x + threadIdx.x] = value; }

// Asserts that everything still works.
void expect_works() {
  std::vector<int> out(96);
  fill_kernel<<<3, 32>>>(out.data(), 7);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(out, std::vector<int>(96, 7));
}

void expect_failure(const std::string& failure, const std::vector<std::string>& parts) {
  for (const std::string& part : parts)
    EXPECT_NE(failure.find(part), std::string::npos) << failure << "\nlacks: " << part;
  EXPECT_EQ(failure.find('\n'), std::string::npos) << failure;
  expect_works();
}

// The line `below` lines below the caller, as a message names it.
std::string line(int below, int here = __builtin_LINE()) {
  return "runtime_test.cu:" + std::to_string(here + below);
}

std::size_t mappings() {
  std::ifstream maps("/proc/self/maps");
  std::size_t lines = 0;
  for (std::string line; std::getline(maps, line);) lines++;
  return lines;
}

}  // namespace

// ---- kernels that fail
// ------------------------------------------------------------------------------------------------

const std::string kWrongLine = line(4);
template <typename T>
__global__ void wrong_kernel(T* memory, int zero) {
  if (blockIdx.y == 1 && threadIdx.x == 5) {
    memory[0] = T(threadIdx.x / zero);
  }
}
const std::string kWrong = "kernel wrong_kernel<int>, block (0, 1, 0), thread (5, 0, 0) ";

int* const kWild =
    reinterpret_cast<int*>(1 << 20);  // no memory is there, but it is not near the null pointer
TEST(Failures, WildPointer) {
  expect_failure(failure_of([] { wrong_kernel<int><<<dim3(1, 2), 8>>>(kWild, 1); }),
                 {kWrong, "address 0x100000", kWrongLine});
}
TEST(Failures, DivisionByZero) {
  int word;
  expect_failure(failure_of([&] { wrong_kernel<int><<<dim3(1, 2), 8>>>(&word, 0); }),
                 {kWrong, "divides an integer by zero", kWrongLine});
}

const std::string kLibraryLine = line(2);
__global__ void library_kernel(char* memory, std::size_t size) {
  if (memchr(memory, 1, size)) __trap();
}
TEST(Failures, WildPointerGivenToALibrary) {
  expect_failure(failure_of([&] { library_kernel<<<1, 1>>>(reinterpret_cast<char*>(64), 1 << 20); }),
                 {"kernel library_kernel, ", "address 0x", kLibraryLine});
}

const std::string kAssertLine = line(1);
__global__ void assert_kernel(int n) { assert(int(threadIdx.x) < n); }
TEST(Failures, Assertion) {
  expect_failure(
      failure_of([] { assert_kernel<<<1, 64>>>(33); }),
      {"kernel assert_kernel, block (0, 0, 0), thread (33, 0, 0) fails the assertion `int(threadIdx.x) < n`",
       kAssertLine});
}

// As functions of the runtime do; the rewriter refuses it in a kernel itself.
__host__ __device__ void refuse_three() { throw std::invalid_argument("three is not allowed"); }
__global__ void throw_kernel() {
  __syncthreads();
  if (threadIdx.x == 3) refuse_three();
  __syncthreads();
}
TEST(Failures, Exception) {
  expect_failure(failure_of([] { throw_kernel<<<1, 64>>>(); }), {"thread (3, 0, 0)", "three is not allowed"});
}

__global__ void trap_kernel() { __trap(); }
TEST(Failures, Trap) {
  expect_failure(failure_of([] { trap_kernel<<<1, 1>>>(); }), {"kernel trap_kernel, ", "__trap()"});
}

__device__ int recurse(int depth, volatile int* sum) {
  volatile int local[64];
  local[depth % 64] = depth;
  return depth == 0 ? 0 : recurse(depth - 1, sum) + local[depth % 64] + *sum;
}
__global__ void recursion_kernel(int* out, int depth) { out[threadIdx.x] = recurse(depth, out); }
TEST(Failures, EndlessRecursion) {
  std::vector<int> out(32);
  recursion_kernel<<<1, 32>>>(out.data(), 100);
  expect_failure(failure_of([&] { recursion_kernel<<<1, 32>>>(out.data(), 1 << 30); }),
                 {"kernel recursion_kernel, ", "overflows its stack", "runtime_test.cu:"});
}

template <int bytes>
__global__ void local_kernel(int* out) {
  volatile char local[bytes];
  local[threadIdx.x] = char(threadIdx.x);
  __syncthreads();
  out[threadIdx.x] = local[threadIdx.x];
}
TEST(Failures, LargeLocalArrays) {
  std::vector<int> out(64);
  local_kernel<500000><<<1, 64>>>(out.data());
  EXPECT_EQ(out[63], 63);
  expect_failure(failure_of([&] { local_kernel<900000><<<1, 64>>>(out.data()); }),
                 {"kernel local_kernel<900000>, ", "overflows its stack"});
}

__host__ __device__ int zero_of_text() { return int(std::string(100, 'x').size() * 0); }
__global__ void endless_kernel(volatile int* flag, int how) {
  if (how == 0)
    while (*flag == 0) {
    }
  if (how == 1)
    for (;;) __syncthreads();
  if (how == 2)
    while (atomicAdd(const_cast<int*>(flag), 0) == 0) {
    }
  if (how == 3)
    for (;;) *flag = zero_of_text();  // mostly inside malloc and free
}
TEST(Failures, KernelsThatNeverEnd) {
  const Setting timeout("EMULATOR_TIMEOUT", "0.2");
  for (int how = 0; how < 4; how++)
    for (int threads : {1, 64}) {
      const Setting checks("EMULATOR_CHECKS", how == 3 ? "none" : "all");  // a string is in host memory
      int flag = 0;
      expect_failure(failure_of([&] { endless_kernel<<<2, threads>>>(&flag, how); }),
                     {"kernel endless_kernel", "has not ended after 0.2 seconds"});
    }
}

void nothing(int) {}
TEST(Failures, Interrupt) {
  const auto before = signal(SIGINT, nothing);  // like Python, which has its own handler
  std::thread other([process = pthread_self()] {
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    pthread_kill(process, SIGINT);
  });
  int flag = 0;
  const std::string failure = failure_of([&] { endless_kernel<<<2, 64>>>(&flag, 0); });
  other.join();
  signal(SIGINT, before);
  expect_failure(failure, {"kernel endless_kernel", "was interrupted"});
}

const std::string kWarpLine = line(2), kBlockLine = line(4);
__global__ void stuck_kernel(int how) {
  if (how == 0 && threadIdx.x < 16) __syncwarp();  // the other lanes wait elsewhere
  if (how == 1 && threadIdx.x % 2) __shfl_sync(0xffffffff, 1, 0);
  __syncthreads();
}
TEST(Failures, ThreadsThatWaitForEachOther) {
  const auto expect_stuck = [](int how, const std::vector<std::string>& parts) {
    const std::string failure = failure_of([&] { stuck_kernel<<<1, 32>>>(how); });
    for (const std::string& part : parts)
      EXPECT_NE(failure.find(part), std::string::npos) << failure << "\nlacks: " << part;
    expect_works();
  };
  expect_stuck(0, {"lanes 0-15 wait at __syncwarp in ", kWarpLine, "lanes 16-31 wait at __syncthreads in ",
                   kBlockLine, "kernel stuck_kernel"});
  expect_stuck(1, {"lanes 1, 3, 5, 7, ... 31 wait at __shfl_sync in "});
}

__global__ void launching_kernel(void (*launch)()) { launch(); }
void launch_from_kernel() { trap_kernel<<<1, 1>>>(); }
TEST(Failures, AKernelThatAKernelLaunched) {
  expect_failure(failure_of([] { launching_kernel<<<1, 1>>>(launch_from_kernel); }),
                 {"kernel trap_kernel, ", "stops at __trap()"});
}

TEST(Failures, DeviceFunctionsOutsideOfKernels) {
  EXPECT_NE(failure_of([] { __syncthreads(); }).find("__syncthreads was called outside"), std::string::npos);
  EXPECT_NE(failure_of([] { __ballot_sync(1, 1); }).find("__ballot_sync was called outside"),
            std::string::npos);
}

// ---- launches that a GPU would refuse
// -----------------------------------------------------------------------------------------

TEST(Limits, LaunchesThatADeviceRefuses) {
  std::vector<int> out(4096);
  const auto error_of = [&](dim3 grid, dim3 block, std::size_t shared = 0) {
    fill_kernel<<<grid, block, shared>>>(out.data(), 1);
    const cudaError_t error = cudaPeekAtLastError();
    EXPECT_EQ(cudaGetLastError(), error);
    EXPECT_EQ(cudaGetLastError(), cudaSuccess);
    return error;
  };
  EXPECT_EQ(error_of(1, 1024), cudaSuccess);
  EXPECT_EQ(error_of(1, 1025), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, dim3(32, 32, 2)), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, dim3(1, 1, 65)), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, 0), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(0, 1), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(dim3(1, 65536), 1), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(dim3(1, 1, 65536), 1), cudaErrorInvalidValue);
  EXPECT_EQ(error_of(1, 1, 48 << 10), cudaSuccess);
  EXPECT_EQ(error_of(1, 1, (48 << 10) + 1), cudaErrorInvalidValue);
  EXPECT_EQ(out, [] {
    std::vector<int> expected(4096);
    std::fill_n(expected.begin(), 1024, 1);
    return expected;
  }());
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidConfiguration), "invalid configuration argument");
  EXPECT_STREQ(cudaGetErrorName(cudaErrorInvalidConfiguration), "cudaErrorInvalidConfiguration");
  EXPECT_STREQ(cudaGetErrorString(cudaErrorInvalidValue), "invalid argument");
}

TEST(Limits, OfAnotherDevice) {
  std::vector<int> out(64);
  const Setting device("EMULATOR_DEVICE", "maxGridSize.y=63 maxThreadsPerBlock=128 sharedMemPerBlock=1024");
  fill_kernel<<<dim3(1, 63), 1>>>(out.data(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  fill_kernel<<<dim3(1, 64), 1>>>(out.data(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  fill_kernel<<<1, 129>>>(out.data(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  fill_kernel<<<1, 1, 1025>>>(out.data(), 1);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  cudaDeviceProp properties;
  EXPECT_EQ(cudaGetDeviceProperties(&properties, 0), cudaSuccess);
  EXPECT_EQ(properties.maxGridSize[1], 63);
  EXPECT_EQ(cudaSetDevice(1), cudaErrorInvalidDevice);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidDevice);
}

template <int bytes>
__global__ void large_kernel(char* out) {
  __shared__ char large[bytes];
  extern __shared__ char more[];
  large[0] = 1;
  out[0] = large[0] + more[0];
}
TEST(Limits, StaticAndDynamicSharedMemoryTogether) {
  const Setting no_check("EMULATOR_CHECKS", "-initialisation");
  char out = 0;
  large_kernel<40000><<<1, 1, 9152>>>(&out);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  out = 9;
  large_kernel<40000><<<1, 1, 9153>>>(&out);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  EXPECT_EQ(out, 9);
  expect_failure(failure_of([&] { large_kernel<49153><<<1, 1>>>(&out); }),
                 {"49153 bytes of static shared memory", "49152"});

  EXPECT_EQ(cudaFuncSetAttribute(large_kernel<8>, cudaFuncAttributeMaxDynamicSharedMemorySize, 90000),
            cudaSuccess);
  large_kernel<8><<<1, 1, 90000>>>(&out);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(cudaFuncSetAttribute(large_kernel<8>, cudaFuncAttributeMaxDynamicSharedMemorySize, 1 << 20),
            cudaErrorInvalidValue);
  EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  cudaDeviceReset();
}

// ---- uninitialised memory
// ----------------------------------------------------------------------------------------------

template <typename T>
__global__ void unwritten_kernel(T* out) {
  __shared__ T value[3];
  extern __shared__ float dynamic[];
  out[2 * blockIdx.x] = value[1];
  out[2 * blockIdx.x + 1] = T(dynamic[0]);
  value[1] = 5;
  dynamic[0] = 5;
}
TEST(Shared, IsUnwrittenInEveryBlock) {
  const Setting no_check("EMULATOR_CHECKS", "-initialisation");
  std::vector<float> floats(8);
  unwritten_kernel<<<4, 1, 4>>>(floats.data());
  for (float value : floats) EXPECT_TRUE(std::isnan(value));
  std::vector<double> doubles(8);
  unwritten_kernel<<<4, 1, 4>>>(doubles.data());
  for (double value : doubles) EXPECT_TRUE(std::isnan(value));
}
TEST(Memory, IsUnwrittenWhenAllocated) {
  float* memory;
  ASSERT_EQ(cudaMalloc(&memory, 1000 * sizeof(float)), cudaSuccess);
  for (int i = 0; i < 1000; i++) EXPECT_TRUE(std::isnan(memory[i]));
  EXPECT_EQ(cudaFree(memory), cudaSuccess);
}

__global__ void stranger_kernel(float* out) {
  if (threadIdx.x < 4) out[threadIdx.x] = __shfl_sync(0xf, 1.0f, int(threadIdx.x) + 2);
}
TEST(Warps, ALaneOutsideTheMaskHasNoValue) {
  float out[4];
  EXPECT_NE(failure_of([&] { stranger_kernel<<<1, 32>>>(out); }), "");
  EXPECT_EQ(out[0], 1);
  EXPECT_EQ(out[1], 1);
  EXPECT_TRUE(std::isnan(out[2]) && std::isnan(out[3]));
}

__global__ void lanes_kernel(unsigned* out) {
  if (threadIdx.x >= 20) return;
  __syncthreads();
  out[threadIdx.x] = __activemask();
}
TEST(Warps, ActiveLanesAreThoseThatHaveNotReturned) {
  std::vector<unsigned> out(32);
  lanes_kernel<<<1, 32>>>(out.data());
  EXPECT_EQ(out[0], 0xfffffu);
}

// ---- sizes, and the state afterwards
// -------------------------------------------------------------------------------------------------

__global__ void count_kernel(unsigned* out) {
  if (__syncthreads_count(1) == int(blockDim.x) && threadIdx.x == 0) atomicAdd(out, blockDim.x);
}
TEST(Grids, AMillionThreads) {
  unsigned counted = 0;
  count_kernel<<<1024, 1024>>>(&counted);
  EXPECT_EQ(counted, 1u << 20);
  std::vector<int> out(1 << 20);
  fill_kernel<<<(1 << 20) / 64, 64>>>(out.data(), 3);
  EXPECT_EQ(out, std::vector<int>(1 << 20, 3));
}

TEST(Leaks, NoStackIsLost) {
  int word = 0;
  unsigned counted = 0;
  count_kernel<<<2, 1024>>>(&counted);  // creates as many as a block can need
  const auto some_of_each = [&] {
    count_kernel<<<2, 512>>>(&counted);
    EXPECT_NE(failure_of([] { throw_kernel<<<2, 1024>>>(); }), "");
    EXPECT_NE(failure_of([] { assert_kernel<<<2, 64>>>(3); }), "");
    EXPECT_NE(failure_of([&] { stuck_kernel<<<3, 256>>>(0); }), "");
    large_kernel<40000><<<1, 1, 9153>>>(reinterpret_cast<char*>(&word));
    EXPECT_EQ(cudaGetLastError(), cudaErrorInvalidValue);
  };
  some_of_each();
  const std::size_t fibers = emulator::Fiber::count(), mapped = mappings();
  EXPECT_LE(fibers, 1025u);
  for (int i = 0; i < 300; i++) some_of_each();
  EXPECT_EQ(emulator::Fiber::count(), fibers);
  EXPECT_LE(mappings(), mapped + 4);  // 300 lost stacks would be 600 more
}

TEST(Leaks, HandlersOfSignalsAreAsBefore) {
  struct sigaction before[64], after;
  for (int number = 1; number < 64; number++) sigaction(number, nullptr, &before[number]);
  stack_t stack_before, stack_after;
  sigaltstack(nullptr, &stack_before);
  expect_works();
  failure_of([] { trap_kernel<<<1, 1>>>(); });
  failure_of([] { wrong_kernel<int><<<dim3(1, 2), 8>>>(kWild, 1); });
  for (int number = 1; number < 64; number++) {
    if (sigaction(number, nullptr, &after) != 0) continue;  // the C library keeps two to itself
    EXPECT_EQ(before[number].sa_handler, after.sa_handler) << number;
  }
  sigaltstack(nullptr, &stack_after);
  EXPECT_EQ(stack_before.ss_flags, stack_after.ss_flags);
  sigset_t blocked;
  pthread_sigmask(SIG_BLOCK, nullptr, &blocked);
  EXPECT_EQ(sigismember(&blocked, SIGSEGV), 0);
}

std::atomic<int> launches_inside{0}, most_inside{0};
__global__ void alone_kernel(int* sums) {
  __shared__ int part[256];
  if (threadIdx.x == 0) most_inside = std::max(most_inside.load(), ++launches_inside);
  part[threadIdx.x] = int(threadIdx.x);
  __syncthreads();
  atomicAdd(sums + blockIdx.x, part[255 - threadIdx.x]);
  __syncthreads();
  if (threadIdx.x == 0) launches_inside--;
}
TEST(Threads, LaunchesOfTwoThreadsComeOneAfterTheOther) {
  std::vector<int> sums[2] = {std::vector<int>(20), std::vector<int>(20)};
  const auto launches = [&](int which) {
    for (int i = 0; i < 50; i++) alone_kernel<<<20, 256>>>(sums[which].data());
  };
  std::thread other(launches, 1);
  launches(0);
  other.join();
  EXPECT_EQ(most_inside, 1);
  for (const auto& sum : sums) EXPECT_EQ(sum, std::vector<int>(20, 50 * 255 * 128));
}
TEST(Threads, AFailureComesToTheThreadThatLaunched) {
  std::string failure;
  std::thread other([&] { failure = failure_of([] { wrong_kernel<int><<<dim3(1, 2), 8>>>(kWild, 1); }); });
  for (int i = 0; i < 100; i++) expect_works();
  other.join();
  expect_failure(failure, {kWrong});
}
