// Correct kernels whose threads wait for each other through memory: fences, atomics, volatile flags.
#include "launch_report.h"

namespace {

enum Fences { by_one, by_all, by_all_before_barrier };

// ---- the last block
// -----------------------------------------------------------------------------------------------

__device__ bool comes_last(unsigned* arrived, Fences fences) {
  __shared__ bool is_last;
  if (fences == by_all || fences == by_all_before_barrier) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (fences == by_one) __threadfence();
    is_last = atomicAdd(arrived, 1u) == gridDim.x - 1;
  }
  __syncthreads();
  return is_last;
}

__global__ void last_block_kernel(float* sum, float* parts, unsigned* arrived, const float* in,
                                  Fences fences) {
  __shared__ float values[64];
  const int t = threadIdx.x;
  parts[blockIdx.x * 64 + t] = 2 * in[blockIdx.x * 64 + t];
  if (!comes_last(arrived, fences)) return;
  float mine = 0;
  for (unsigned block = 0; block < gridDim.x; block++) mine += parts[block * 64 + (t + block) % 64];
  values[t] = mine;
  __syncthreads();
  if (t == 0) {
    for (int i = 1; i < 64; i++) mine += values[i];
    sum[0] = mine;
    *arrived = 0;  // for the next launch
  }
}
TEST(Released, ToTheLastBlock) {
  float *in = device("in", counting_up<float>(64 * 50)), *parts = fresh<float>("parts", 64 * 50),
        *sum = fresh<float>("sum", 1);
  unsigned* arrived = zeroes<unsigned>("arrived", 1);
  for (Fences fences : {by_one, by_all, by_all_before_barrier})
    expect_silence([&] { last_block_kernel<<<50, 64>>>(sum, parts, arrived, in, fences); });
}

// As in the programming guide: the thread that writes the part has the fence.
__global__ void guide_kernel(float* sum, volatile float* parts, unsigned* arrived, const float* in) {
  __shared__ bool is_last;
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = in[blockIdx.x];
    __threadfence();
    is_last = atomicInc(arrived, gridDim.x) == gridDim.x - 1;
  }
  __syncthreads();
  if (is_last && threadIdx.x == 5) {
    float total = 0;
    for (unsigned block = 0; block < gridDim.x; block++) total += parts[block];
    sum[0] = total;
    *arrived = 0;
  }
}
TEST(Released, AsInTheGuide) {
  float *in = device("in", counting_up<float>(50)), *parts = fresh<float>("parts", 50),
        *sum = fresh<float>("sum", 1);
  unsigned* arrived = zeroes<unsigned>("arrived", 1);
  expect_silence([&] { guide_kernel<<<50, 32>>>(sum, parts, arrived, in); });
}

// ---- barriers of the grid
// -----------------------------------------------------------------------------------------

__device__ void grid_barrier(unsigned* arrived, unsigned round, Fences fences) {
  if (fences != by_one) __threadfence();
  __syncthreads();
  if (threadIdx.x == 0) {
    if (fences == by_one) __threadfence();
    atomicAdd(arrived, 1u);
    while (atomicAdd(arrived, 0u) < round * gridDim.x) {
    }
  }
  __syncthreads();
}
__global__ void rounds_kernel(float* a, float* b, unsigned* arrived, unsigned rounds, Fences fences) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (unsigned round = 1; round <= rounds; round++) {
    b[i] = a[(i + 1) % n] + a[n - 1 - i];
    grid_barrier(arrived, round, fences);
    float* const swap = a;
    a = b, b = swap;
  }
}
TEST(Released, AtABarrierOfTheGrid) {
  for (Fences fences : {by_one, by_all}) {
    expect_silence([&] {
      float *a = device("a", counting_up<float>(128)), *b = fresh<float>("b", 128);
      unsigned* arrived = zeroes<unsigned>("arrived", 1);
      rounds_kernel<<<4, 32>>>(a, b, arrived, 8, fences);
    });
  }
}

// The last block to arrive releases the others by a volatile word that they poll.
__global__ void door_kernel(int* data, unsigned* arrived, volatile unsigned* door, int rounds) {
  const unsigned n = gridDim.x * blockDim.x, i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int round = 0; round < rounds; round++) {
    const int next = data[(i + 33) % n] + 1;
    for (int half = 0; half < 2; half++) {
      __syncthreads();
      if (threadIdx.x == 0) {
        __threadfence();
        const unsigned now = *door;
        if (atomicAdd(arrived, 1u) == gridDim.x - 1) {
          *arrived = 0;
          __threadfence();
          *door = now + 1;
        } else {
          while (*door == now) {
          }
        }
        __threadfence();
      }
      __syncthreads();
      if (half == 0) data[i] = next;
    }
  }
}
TEST(Released, ThroughADoor) {
  int* data = device("data", counting_up<int>(96));
  unsigned *arrived = zeroes<unsigned>("arrived", 1), *door = zeroes<unsigned>("door", 1);
  expect_silence([&] { door_kernel<<<3, 32>>>(data, arrived, door, 5); });
}

// ---- locks
// ------------------------------------------------------------------------------------------------------

__device__ void lock(int* mutex) {
  while (atomicCAS(mutex, 0, 1) != 0) {
  }
  __threadfence();
}
__device__ void unlock(int* mutex) {
  __threadfence();
  atomicExch(mutex, 0);
}
__global__ void lock_kernel(int* mutex, int* total, int* history) {
  for (int lane = 0; lane < 32; lane++)
    if (int(threadIdx.x) % 32 == lane) {
      lock(mutex);
      history[*total] = int(threadIdx.x);
      if (*total > 0) history[*total - 1]++;
      ++*total;
      unlock(mutex);
    }
}
TEST(Released, WithALock) {
  expect_silence([] {
    int *mutex = zeroes<int>("mutex", 1), *total = zeroes<int>("total", 1),
        *history = fresh<int>("history", 300);
    lock_kernel<<<3, 96>>>(mutex, total, history);
    EXPECT_EQ(total[0], 288);
  });
}

__global__ void shared_lock_kernel(int* out) {
  __shared__ int mutex, total;
  if (threadIdx.x == 0) mutex = total = 0;
  __syncthreads();
  if (threadIdx.x % 32 == 0) {
    lock(&mutex);
    total += int(threadIdx.x);
    unlock(&mutex);
  }
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = total;
}
TEST(Released, WithALockInSharedMemory) {
  int* out = fresh<int>("out", 512);
  expect_silence([&] { shared_lock_kernel<<<4, 128>>>(out); });
}

// ---- flags
// ------------------------------------------------------------------------------------------------------

// Each block waits for the previous block, and passes on what it knows.
__global__ void chain_kernel(int* data, volatile int* ready, int* ticket) {
  __shared__ int block;
  if (threadIdx.x == 0) block = atomicAdd(ticket, 1);
  __syncthreads();
  const int t = threadIdx.x;
  if (block > 0) {
    if (t == 0)
      while (!ready[block - 1]) {
      }
    __syncthreads();
  }
  int sum = 1;
  for (int before = block > 4 ? block - 4 : 0; before < block; before++)
    sum += data[before * 32 + (t + 1) % 32];
  data[block * 32 + t] = sum % 1000;
  __syncthreads();
  if (t == 0) {
    __threadfence();
    ready[block] = 1;
  }
}
TEST(Released, FromBlockToBlock) {
  expect_silence([] {
    int *data = fresh<int>("data", 32 * 30), *ready = zeroes<int>("ready", 30),
        *ticket = zeroes<int>("ticket", 1);
    chain_kernel<<<30, 32>>>(data, ready, ticket);
  });
}

// Decoupled look-back: lanes read the states and the sums of the previous blocks.
__global__ void look_back_kernel(int* out, int* sums, unsigned* states, const int* in) {
  const int lane = threadIdx.x, block = blockIdx.x;
  int sum = in[block * 32 + lane];
  for (int offset = 1; offset < 32; offset *= 2) {
    const int other = __shfl_up_sync(0xffffffff, sum, offset);
    if (lane >= offset) sum += other;
  }
  if (lane == 31) {
    sums[block] = sum;
    __threadfence();
    atomicExch(&states[block], 1u);
  }
  int before = 0;
  for (int first = 0; first < block; first += 32)
    if (first + lane < block) {
      while (__ldcg(&states[first + lane]) == 0) {
      }
      before += sums[first + lane];
    }
  __syncwarp();
  for (int offset = 16; offset > 0; offset /= 2) before += __shfl_xor_sync(0xffffffff, before, offset);
  out[block * 32 + lane] = before + sum;
}
TEST(Released, ToThoseWhoLookBack) {
  expect_silence([] {
    int *in = device("in", counting_up<int>(32 * 40)), *out = fresh<int>("out", 32 * 40),
        *sums = fresh<int>("sums", 40);
    unsigned* states = zeroes<unsigned>("states", 40);
    look_back_kernel<<<40, 32>>>(out, sums, states, in);
  });
}

// One warp fills slots that another warp empties. Every lane has a fence, but only one lane sets the flag.
__global__ void slots_kernel(int* out, const int* in, int rounds) {
  __shared__ int slots[2][32];
  __shared__ volatile int filled[2], emptied[2];
  const int lane = threadIdx.x % 32;
  if (threadIdx.x < 2) {
    filled[threadIdx.x] = 0;
    emptied[threadIdx.x] = 0;
  }
  __syncthreads();
  for (int round = 0; round < rounds; round++) {
    const int which = round % 2, turn = round / 2;
    if (threadIdx.x < 32) {
      if (lane == 0)
        while (emptied[which] < turn) {
        }
      __syncwarp();
      slots[which][lane] = in[round * 32 + lane];
      __threadfence_block();
      __syncwarp();
      if (lane == 0) filled[which] = turn + 1;
    } else {
      while (filled[which] <= turn) {
      }
      out[round * 32 + lane] = slots[which][31 - lane];
      __threadfence_block();
      __syncwarp();
      if (lane == 0) emptied[which] = turn + 1;
    }
  }
}
TEST(Released, FromWarpToWarp) {
  int *in = device("in", counting_up<int>(32 * 12)), *out = fresh<int>("out", 32 * 12);
  expect_silence([&] { slots_kernel<<<2, 64>>>(out, in, 12); });
}

// The second thread to reach a node continues to its parent, and reads the results of both children.
__global__ void tree_kernel(int* nodes, int* visits, const int* in, int leaves) {
  const int leaf = blockIdx.x * blockDim.x + threadIdx.x;
  int node = leaves + leaf;
  nodes[node] = in[leaf];
  while (node > 1) {
    node /= 2;
    __threadfence();
    if (atomicAdd(&visits[node], 1) == 0) return;
    nodes[node] = nodes[2 * node] + nodes[2 * node + 1];
  }
}
TEST(Released, UpATree) {
  expect_silence([] {
    int *nodes = fresh<int>("nodes", 512), *visits = zeroes<int>("visits", 256),
        *in = device("in", counting_up<int>(256));
    tree_kernel<<<4, 64>>>(nodes, visits, in, 256);
    EXPECT_EQ(nodes[1], 256 * 257 / 2);
  });
}

// Releases that are known only indirectly, through other threads.
__global__ void hand_on_kernel(int* data, int* flags, int n) {
  const int block = blockIdx.x;
  if (block > 0)
    while (atomicAdd(&flags[block - 1], 0) == 0) {
    }
  __threadfence();
  int sum = 1;
  for (int before = 0; before < block; before++) sum += data[before];
  data[block] = sum;
  __threadfence();
  atomicExch(&flags[block], 1);
  static_cast<void>(n);
}
TEST(Released, FromHandToHand) {
  expect_silence([] {
    int *data = fresh<int>("data", 30), *flags = zeroes<int>("flags", 30);
    hand_on_kernel<<<30, 1>>>(data, flags, 30);
    EXPECT_EQ(data[29], 1 << 29);
  });
}

}  // namespace
