// Inline PTX: flags, barriers by number, mbarriers, and addresses.
#include "case.h"

// ---- flags

__global__ void flag(int* message, int* is_set, int* received) {
  if (blockIdx.x == 0) {
    *message = 42;  // BUG races: message
    asm volatile("st.relaxed.gpu.global.s32 [%0], 1;" ::"l"(is_set) : "memory");
  } else {
    int seen = 0;
    while (!seen) asm volatile("ld.relaxed.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(is_set) : "memory");
    *received = *message;  // BUG races: message
  }
}
CASE(wrong_relaxed_flag) { flag<<<2, 1>>>(zeros<int>(1), zeros<int>(1), zeros<int>(1)); }

__global__ void flag_right(int* message, int* is_set, int* received) {
  if (blockIdx.x == 0) {
    *message = 42;
    asm volatile("st.release.gpu.global.s32 [%0], 1;" ::"l"(is_set) : "memory");
  } else {
    int seen = 0;
    while (!seen) asm volatile("ld.acquire.gpu.global.s32 %0, [%1];" : "=r"(seen) : "l"(is_set) : "memory");
    *received = *message;
  }
}
CASE(right_release_and_acquire) {
  int* received = zeros<int>(1);
  flag_right<<<2, 1>>>(zeros<int>(1), zeros<int>(1), received);
  expect_one(received, 42);
}

// ---- barriers of some warps

__global__ void pass_between_warps(int* out) {
  __shared__ int buffer[32];
  if (threadIdx.x < 32) {
    buffer[threadIdx.x] = threadIdx.x + 1;  // BUG races: buffer
    asm volatile("bar.arrive 1, 64;" ::: "memory");
  } else if (threadIdx.x < 64) {
    asm volatile("bar.sync 1, 64;" ::: "memory");
  } else {
    out[threadIdx.x - 64] = buffer[threadIdx.x - 64];  // BUG races: buffer
  }
}
CASE(wrong_third_warp_that_does_not_wait) { pass_between_warps<<<1, 96>>>(unwritten<int>(32)); }

__global__ void pass_between_warps_right(int* out) {
  __shared__ int buffer[32];
  if (threadIdx.x < 32) {
    buffer[threadIdx.x] = threadIdx.x + 1;
    asm volatile("bar.arrive 1, 96;" ::: "memory");
  } else {
    asm volatile("bar.sync 1, 96;" ::: "memory");
    if (threadIdx.x >= 64) out[threadIdx.x - 64] = buffer[threadIdx.x - 64];
  }
}
CASE(right_third_warp_that_waits) {
  int* out = unwritten<int>(32);
  pass_between_warps_right<<<1, 96>>>(out);
  expect_each(out, 32, [](int i) { return i + 1; });
}

__global__ void wait_for_too_many(int* out) {
  if (threadIdx.x < 64) asm volatile("bar.sync 1, 96;" ::: "memory");  // BUG barriers
  out[threadIdx.x] = 1;
}
CASE(wrong_number_of_threads) { wait_for_too_many<<<1, 96>>>(unwritten<int>(96)); }

__global__ void wait_for_two_warps(int* out) {
  if (threadIdx.x < 64) asm volatile("bar.sync 1, 64;" ::: "memory");
  out[threadIdx.x] = 1;
}
CASE(right_number_of_threads) { wait_for_two_warps<<<1, 96>>>(unwritten<int>(96)); }

// ---- mbarriers

__device__ unsigned address_of(const void* shared) { return unsigned(__cvta_generic_to_shared(shared)); }

__device__ void wait_for_first_phase(unsigned barrier) {
  asm volatile(
      "{.reg .pred p;\n"
      "AGAIN: mbarrier.test_wait.parity.shared.b64 p, [%0], 0;\n"
      "@!p bra AGAIN;}" ::"r"(barrier)
      : "memory");
}

__global__ void read_before_phase(int* out) {
  __shared__ unsigned long long barrier;
  __shared__ int value;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address_of(&barrier)));
  __syncthreads();
  if (threadIdx.x == 0) {
    value = 42;  // BUG races: value
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(address_of(&barrier)) : "memory");
  }
  if (threadIdx.x == 32) out[0] = value;  // BUG races: value
}
CASE(wrong_read_before_the_phase_completes) { read_before_phase<<<1, 64>>>(unwritten<int>(1)); }

__global__ void read_after_phase(int* out) {
  __shared__ unsigned long long barrier;
  __shared__ int value;
  if (threadIdx.x == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" ::"r"(address_of(&barrier)));
  __syncthreads();
  if (threadIdx.x == 0) {
    value = 42;
    asm volatile("{.reg .b64 s; mbarrier.arrive.shared.b64 s, [%0];}" ::"r"(address_of(&barrier)) : "memory");
  }
  if (threadIdx.x != 32) return;
  wait_for_first_phase(address_of(&barrier));
  out[0] = value;
}
CASE(right_read_after_the_phase_completes) {
  int* out = unwritten<int>(1);
  read_after_phase<<<1, 64>>>(out);
  expect_one(out, 42);
}

// ---- vectors and addresses

__global__ void load_pairs(int* out, const int* x) {
  int a, b;
  const int* pair = x + threadIdx.x;
  asm volatile("ld.global.v2.s32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(pair));  // BUG memory: x
  out[threadIdx.x] = a + b;
}
CASE(wrong_vector_at_an_odd_element) { load_pairs<<<1, 8>>>(unwritten<int>(8), numbers<int>(16)); }

__global__ void load_pairs_right(int* out, const int* x) {
  int a, b;
  asm volatile("ld.global.v2.s32 {%0, %1}, [%2];" : "=r"(a), "=r"(b) : "l"(x + 2 * threadIdx.x));
  out[threadIdx.x] = a + b;
}
CASE(right_vector_at_an_even_element) {
  int* out = unwritten<int>(8);
  load_pairs_right<<<1, 8>>>(out, numbers<int>(16));
  expect_each(out, 8, [](int i) { return 4 * i + 1; });
}

__global__ void store_past_end(int* unused) {
  __shared__ int tile[32];
  const unsigned to = address_of(tile) + 4 * threadIdx.x;
  asm volatile("st.shared.s32 [%0+4], %1;" ::"r"(to), "r"(threadIdx.x) : "memory");  // BUG memory: tile
}
CASE(wrong_store_past_the_end_of_shared_memory) { store_past_end<<<1, 32>>>(unwritten<int>(1)); }

__global__ void store_inside(int* unused) {
  __shared__ int tile[33];
  const unsigned to = address_of(tile) + 4 * threadIdx.x;
  asm volatile("st.shared.s32 [%0+4], %1;" ::"r"(to), "r"(threadIdx.x) : "memory");
}
CASE(right_store_inside_shared_memory) { store_inside<<<1, 32>>>(unwritten<int>(1)); }

int main(int words, char** word) { return run_cases(words, word); }
