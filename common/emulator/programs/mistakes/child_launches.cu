// Kernels that launch kernels: what parents and children see of each other, and launches that fail.
#include "case.h"

__global__ void write_one(int* out) {
  *out = 1;  // BUG races: out
}
__global__ void read_result(int* out, int* copy) {
  write_one<<<1, 1>>>(out);
  *copy = *out;  // BUG races: out
}
CASE(wrong_parent_reads_the_result_of_its_child) { read_result<<<1, 1>>>(zeros<int>(1), unwritten<int>(1)); }

__global__ void set_one(int* out) { *out = 1; }
__global__ void copy_one(const int* out, int* copy) { *copy = *out; }
__global__ void read_in_tail(int* out, int* copy) {
  set_one<<<1, 1>>>(out);
  copy_one<<<1, 1, 0, cudaStreamTailLaunch>>>(out, copy);
}
CASE(right_tail_launch_reads_the_result) {
  int* copy = unwritten<int>(1);
  read_in_tail<<<1, 1>>>(zeros<int>(1), copy);
  expect_one(copy, 1);
}

__global__ void sum_block(const int* in, int* out) {
  int sum = 0;
  for (int i = 0; i < 64; i++) sum += in[i];  // BUG races: in
  *out = sum;
}
__global__ void launch_without_barrier(int* in, int* out) {
  in[threadIdx.x] = 1;  // BUG races: in
  if (threadIdx.x == 0) sum_block<<<1, 1>>>(in, out);
}
CASE(wrong_launch_before_the_block_has_written) {
  launch_without_barrier<<<1, 64>>>(zeros<int>(64), unwritten<int>(1));
}

__global__ void sum_written(const int* in, int* out) {
  int sum = 0;
  for (int i = 0; i < 64; i++) sum += in[i];
  *out = sum;
}
__global__ void launch_behind_barrier(int* in, int* out) {
  in[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) sum_written<<<1, 1>>>(in, out);
}
CASE(right_launch_behind_a_barrier) {
  int* out = unwritten<int>(1);
  launch_behind_barrier<<<1, 64>>>(zeros<int>(64), out);
  expect_one(out, 64);
}

__global__ void warp_launches(int* in, int* out) {
  in[threadIdx.x] = 1;
  __syncwarp();
  if (threadIdx.x % 32 == 0) set_one<<<1, 1>>>(&in[threadIdx.x + 1]);
  *out = 0;
}
CASE(right_launch_behind_a_step_of_the_warp) { warp_launches<<<1, 32>>>(zeros<int>(64), unwritten<int>(1)); }

__global__ void add_to(int* out) {
  *out += 1;  // BUG races: out
}
__global__ void launch_one_each(int* out) { add_to<<<1, 1>>>(out); }
CASE(wrong_children_of_two_blocks) { launch_one_each<<<2, 1>>>(zeros<int>(1)); }

__global__ void increment(int* out) { *out += 1; }
__global__ void launch_two(int* out) {
  increment<<<1, 1>>>(out);
  increment<<<1, 1>>>(out);
}
CASE(right_children_in_one_stream) {
  int* out = zeros<int>(1);
  launch_two<<<1, 1>>>(out);
  expect_one(out, 2);
}

__global__ void add_slowly(int* out) {
  *out += 1;  // BUG races: out
}
__global__ void forget_both(int* out) {
  add_slowly<<<1, 1, 0, cudaStreamFireAndForget>>>(out);
  add_slowly<<<1, 1, 0, cudaStreamFireAndForget>>>(out);
}
CASE(wrong_children_without_an_order) { forget_both<<<1, 1>>>(zeros<int>(1)); }

__global__ void add_own(int* out, int i) { out[i] += 1; }
__global__ void forget_two(int* out) {
  add_own<<<1, 1, 0, cudaStreamFireAndForget>>>(out, 0);
  add_own<<<1, 1, 0, cudaStreamFireAndForget>>>(out, 1);
}
CASE(right_children_with_elements_of_their_own) {
  int* out = zeros<int>(2);
  forget_two<<<1, 1>>>(out);
  expect_each(out, 2, [](int) { return 1; });
}

__global__ void overwrite(int* out) {
  *out = 2;  // BUG races: out
}
__global__ void write_after_launch(int* out) {
  overwrite<<<1, 1>>>(out);
  *out = 1;  // BUG races: out
}
CASE(wrong_parent_writes_after_the_launch) { write_after_launch<<<1, 1>>>(zeros<int>(1)); }

__global__ void write_before_launch(int* out) {
  *out = 1;
  set_one<<<1, 1>>>(out + 1);
  increment<<<1, 1>>>(out);
}
CASE(right_parent_writes_before_the_launch) {
  int* out = zeros<int>(2);
  write_before_launch<<<1, 1>>>(out);
  expect_each(out, 2, [](int i) { return i ? 1 : 2; });
}

__global__ void past_the_end(int* out) {
  out[threadIdx.x] = 1;  // BUG memory: out
}
__global__ void launch_too_many(int* out) { past_the_end<<<1, 9>>>(out); }
CASE(wrong_child_past_the_end) { launch_too_many<<<1, 1>>>(zeros<int>(8)); }

__global__ void up_to_the_end(int* out) { out[threadIdx.x] = 1; }
__global__ void launch_enough(int* out) { up_to_the_end<<<1, 8>>>(out); }
CASE(right_child_up_to_the_end) {
  int* out = unwritten<int>(8);
  launch_enough<<<1, 1>>>(out);
  expect_each(out, 8, [](int) { return 1; });
}

__global__ void give_local(int* out) {
  int local = 0;
  set_one<<<1, 1>>>(&local);  // BUG memory: out
  *out = local;
}
CASE(wrong_child_gets_a_local_variable) { give_local<<<1, 1>>>(unwritten<int>(1)); }

__global__ void give_shared(int* out) {
  __shared__ int part[32];
  part[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) sum_written<<<1, 1>>>(part, out);  // BUG memory: in
}
CASE(wrong_child_gets_shared_memory) { give_shared<<<1, 32>>>(unwritten<int>(1)); }

__device__ int in_global[64];
__global__ void give_global(int* out) {
  in_global[threadIdx.x] = 1;
  __syncthreads();
  if (threadIdx.x == 0) sum_written<<<1, 1>>>(in_global, out);
}
CASE(right_child_gets_global_memory) {
  int* out = unwritten<int>(1);
  give_global<<<1, 64>>>(out);
  expect_one(out, 64);
}

__global__ void launch_large(int* out) {
  set_one<<<1, 2048>>>(out);  // BUG launch: set_one
}
CASE(wrong_child_with_too_many_threads) { launch_large<<<1, 1>>>(zeros<int>(1)); }

__global__ void launch_itself(int* out) {
  launch_itself<<<1, 1>>>(out);  // BUG launch: launch_itself
}
CASE(wrong_launches_without_an_end) { launch_itself<<<1, 1>>>(zeros<int>(1)); }

__global__ void launch_down(int* depth, int left) {
  *depth += 1;
  if (left > 1) launch_down<<<1, 1>>>(depth, left - 1);
}
CASE(right_launches_of_some_depth) {
  int* depth = zeros<int>(1);
  launch_down<<<1, 1>>>(depth, 20);
  expect_one(depth, 20);
}

__device__ int arrived;
__global__ void last_block_launches(int* parts, int* out, int blocks) {
  parts[blockIdx.x] = 1;
  __threadfence();
  if (atomicAdd(&arrived, 1) < blocks - 1) return;
  __threadfence();
  sum_written<<<1, 1>>>(parts, out);
}
CASE(right_last_block_launches) {
  int* out = unwritten<int>(1);
  last_block_launches<<<64, 1>>>(zeros<int>(64), out, 64);
  expect_one(out, 64);
}

__global__ void tail_after_all_blocks(int* parts, int* out) {
  parts[blockIdx.x] = 1;
  if (blockIdx.x == 0) sum_written<<<1, 1, 0, cudaStreamTailLaunch>>>(parts, out);
}
CASE(right_tail_launch_after_all_blocks) {
  int* out = unwritten<int>(1);
  tail_after_all_blocks<<<64, 1>>>(zeros<int>(64), out);
  expect_one(out, 64);
}

int main(int words, char** word) { return run_cases(words, word); }
