// The blocks of a chain: who they are, and how results get from one to another.
#pragma once

#include <cooperative_groups.h>

#include <cuda/atomic>
#include <type_traits>

#include "layout.h"
#include "work.h"

// What all threads of a block know of its chain.
struct Chain {
  int index;  // among all chains
  int rank;   // of this block in the chain
  int blocks;
  Exchange exchange;

  __device__ Chain(const Partition& partition, int first_chain)
      : index(first_chain + blockIdx.x / partition.blocks),
        rank(blockIdx.x % partition.blocks),
        blocks(partition.blocks),
        exchange(partition.exchange) {}
};

// A barrier of the chains' blocks by a counter in global memory. What a block wrote before is then visible
// to the others.
class GridBarrier {
 public:
  __device__ GridBarrier(const Chain& chain, unsigned* arrivals)
      : blocks_(chain.blocks),
        arrivals_(arrivals + blockIdx.x / chain.blocks * (kArrivalBytes / sizeof(unsigned))) {}

  __device__ void wait() {
    passed_ += blocks_;
    __syncthreads();
    if (threadIdx.x == 0) {
      const cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*arrivals_);
      counter.fetch_add(1, cuda::memory_order_release);
      while (counter.load(cuda::memory_order_acquire) < passed_) {
      }
    }
    __syncthreads();
  }

 private:
  const unsigned blocks_;
  unsigned* const arrivals_;  // zero at launch; counts the arrivals at all barriers
  unsigned passed_ = 0;
};

// What the blocks of a cluster send one another in each step. A barrier of the whole cluster would also wait
// until all results are in global memory. Instead, each store says by itself that it has arrived, and a block
// waits for the bytes that it needs. Deliveries are numbered from 1; two buffers take turns. A block can send
// delivery n + 2 only after it has received delivery n + 1 of all blocks, and they sent it after they had
// read delivery n, in the same buffer.
class Deliveries {
 public:
  // memory: kDeliveriesBytes of shared memory. bytes: of one delivery, from all blocks.
  __device__ Deliveries(char* memory, int bytes) : barriers_(address_of(memory)), bytes_(bytes) {}

  // All threads of the cluster call this once.
  __device__ void start() const {
#if __CUDA_ARCH__ >= 900
    if (threadIdx.x == 0) {
      for (int64_t buffer = 0; buffer < 2; ++buffer) {
        asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(barrier(buffer)) : "memory");
        expect(buffer);
      }
      asm volatile("fence.mbarrier_init.release.cluster;" ::: "memory");
    }
    cooperative_groups::this_cluster().sync();  // all blocks have started, and expect deliveries
#endif
  }

  // All threads of the cluster call this at the end: the memory of a block that has ended may not
  // be written to.
  __device__ void end() const {
#if __CUDA_ARCH__ >= 900
    cooperative_groups::this_cluster().sync();
#endif
  }

  // The shared memory of another block, as an address that `send` takes. It is worth keeping.
  __device__ uint32_t memory_of(int block) const {
    uint32_t mapped = 0;
#if __CUDA_ARCH__ >= 900
    asm("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(mapped) : "r"(barriers_), "r"(block));
#endif
    return mapped;
  }

  // Stores 8 or 16 bytes as a part of a delivery. place: in this block's shared memory; the other block has
  // the same.
  template <typename Vector>
  __device__ __forceinline__ void send(int64_t number, uint32_t memory, const void* place,
                                       const Vector& vector) const {
#if __CUDA_ARCH__ >= 900
    const uint32_t to = memory + (address_of(place) - barriers_), counter = memory + offset(number);
    if constexpr (sizeof(Vector) == 16) {
      const uint4 words = reinterpret_cast<const uint4&>(vector);
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %2, %3, %4}, [%5];" ::
              "r"(to),
          "r"(words.x), "r"(words.y), "r"(words.z), "r"(words.w), "r"(counter)
          : "memory");
    } else {
      const uint2 words = reinterpret_cast<const uint2&>(vector);
      asm volatile(
          "st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.v2.b32 [%0], {%1, %2}, [%3];" ::"r"(to),
          "r"(words.x), "r"(words.y), "r"(counter)
          : "memory");
    }
#endif
  }

  // Waits until all of a delivery has arrived, and expects the next one in its buffer. Acquires for the block
  // only: for the cluster, the compiler would also empty the L1 cache, and nothing here goes through it.
  __device__ __forceinline__ void wait(int64_t number) const {
#if __CUDA_ARCH__ >= 900
    const uint32_t parity = uint32_t(number - 1) / 2 % 2;
    uint32_t is_there = 0;
    while (!is_there)
      asm volatile(
          "{.reg .pred p; mbarrier.try_wait.parity.shared::cta.b64 p, [%1], %2; selp.u32 %0, "
          "1, 0, p;}"
          : "=r"(is_there)
          : "r"(barrier(number)), "r"(parity)
          : "memory");
    if (threadIdx.x == 0) expect(number);
#endif
  }

 private:
  __device__ static uint32_t address_of(const void* place) {
    return uint32_t(__cvta_generic_to_shared(place));
  }
  __device__ static uint32_t offset(int64_t number) { return uint32_t(number) % 2 * sizeof(uint64_t); }
  __device__ uint32_t barrier(int64_t number) const { return barriers_ + offset(number); }

  __device__ void expect(int64_t number) const {
#if __CUDA_ARCH__ >= 900
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(barrier(number)), "r"(bytes_)
                 : "memory");
#endif
  }

  const uint32_t barriers_;
  const int bytes_;
};

// The gates that a thread computes in each step: those of one unit, in every rows_at_once-th row. One round
// computes as many whole rows as the block has threads for.
struct ThreadMapping {
  int unit, first_row;  // in the block and in the chain
  int rows_at_once, rounds;
  int64_t b, s;  // in the batch and in the state
  bool has_unit;
  int valid_rounds;  // the first rounds, in which the thread has a row of the batch, not only padding

  __device__ ThreadMapping(const Partition& partition, const Chain& chain, const Sizes& sizes)
      : unit(threadIdx.x % partition.units),
        first_row(threadIdx.x / partition.units),
        rows_at_once(kThreads / partition.units),
        rounds(divide_up(partition.rows, rows_at_once)),
        b(int64_t(chain.index) * partition.rows + first_row),
        s(int64_t(chain.rank) * partition.units + unit),
        has_unit(first_row < rows_at_once && s < sizes.state) {
    const int rows = partition.rows - first_row;
    const int64_t left = sizes.batch - b;
    valid_rounds =
        has_unit && rows > 0 && left > 0 ? divide_up(left < rows ? int(left) : rows, rows_at_once) : 0;
  }

  __device__ int row(int round) const { return first_row + round * rows_at_once; }
};

// Calls compute(count, round) for all rounds: `count` of them together, from `round` on. The instructions of
// one do not wait for those of the other.
template <typename Compute>
__device__ __forceinline__ void for_all_rounds(int rounds, Compute compute) {
  int round = 0;
  for (; round + kRoundsAtOnce <= rounds; round += kRoundsAtOnce)
    compute(std::integral_constant<int, kRoundsAtOnce>(), round);
  for (; round < rounds; ++round) compute(std::integral_constant<int, 1>(), round);
}

// The numbers of steps of a chain's rows, in shared memory.
class Lengths {
 public:
  __device__ explicit Lengths(char* memory) : of_rows_(reinterpret_cast<int64_t*>(memory)) {}

  // lengths: [B], or null if all rows have all steps.
  __device__ void load(const int64_t* lengths, const Sizes& sizes, int64_t first_row, int rows) const {
    for (int row = threadIdx.x; row < rows; row += kThreads)
      of_rows_[row] = lengths && first_row + row < sizes.batch ? lengths[first_row + row] : sizes.steps;
  }

  __device__ int64_t operator[](int row) const { return of_rows_[row]; }

 private:
  int64_t* const of_rows_;
};

// A number as it was loaded. Numbers of 16 bits have a register of their own: to pack two of them into one,
// the thread would have to wait for both.
template <typename scalar_t>
class Loaded {
 public:
  __device__ __forceinline__ void load(const scalar_t& from) {
    if constexpr (sizeof(scalar_t) == sizeof(uint16_t))
      bits_ = reinterpret_cast<const uint16_t&>(from);
    else
      bits_ = from;
  }
  __device__ __forceinline__ operator scalar_t() const {
    if constexpr (sizeof(scalar_t) == sizeof(uint16_t)) {
      const uint16_t bits = bits_;
      return reinterpret_cast<const scalar_t&>(bits);
    } else {
      return bits_;
    }
  }

 private:
  std::conditional_t<sizeof(scalar_t) == sizeof(uint16_t), uint32_t, scalar_t> bits_ = 0;
};

// A thread's numbers in an array [T,B,kNumbers,S], or [B,kNumbers,S], of which it goes through the steps.
template <typename scalar_t, int kNumbers>
class Cursor {
 public:
  // first: the first step, and direction: 1 or -1.
  __device__ Cursor(const void* array, const ThreadMapping& mapping, const Sizes& sizes, int64_t first = 0,
                    int direction = 1)
      : at_(static_cast<scalar_t*>(const_cast<void*>(array)) +
            ((first * sizes.batch + mapping.b) * kNumbers * sizes.state + mapping.s)),
        is_there_(array != nullptr),
        step_(direction * sizes.batch * sizes.state),
        round_(mapping.rows_at_once * sizes.state),
        state_size_(sizes.state) {}

  __device__ bool is_there() const { return is_there_; }
  __device__ void advance() { at_ += step_ * kNumbers; }
  __device__ scalar_t& operator()(int round, int number = 0) const {
    return at_[round * round_ * kNumbers + number * state_size_];
  }

 private:
  scalar_t* at_;
  bool is_there_;
  int64_t step_, round_, state_size_;
};
