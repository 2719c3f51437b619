// Barriers of the grid: blocks that exchange values without one, or that never reach it.
#include <cooperative_groups.h>

#include "case.h"

namespace cg = cooperative_groups;

template <typename... Parameters, typename... Arguments>
void launch_cooperatively(void (*kernel)(Parameters...), int blocks, int threads, Arguments... arguments) {
  cudaLaunchAttribute attribute;
  attribute.id = cudaLaunchAttributeCooperative;
  attribute.val.cooperative = 1;
  cudaLaunchConfig_t config = {};
  config.gridDim = blocks, config.blockDim = threads;
  config.attrs = &attribute, config.numAttrs = 1;
  check(cudaLaunchKernelEx(&config, kernel, Parameters(arguments)...));
}

// ---- a barrier that is left out, or at the wrong place

// Each step reads what all blocks stored in the step before.
__global__ void steps_in_one_array(int* state, int n) {
  const cg::grid_group grid = cg::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 3; step++) {
    const int next = state[(i + 32) % n] + 1;  // BUG races: state
    state[i] = next;                           // BUG races: state
    grid.sync();
  }
}
CASE(wrong_step_in_place) { launch_cooperatively(steps_in_one_array, 4, 32, zeros<int>(128), 128); }

__global__ void steps_right(int* state, int n) {
  const cg::grid_group grid = cg::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 3; step++) {
    const int next = state[step % 2 * n + (i + 32) % n] + 1;
    state[(step + 1) % 2 * n + i] = next;
    grid.sync();
  }
}
CASE(right_two_arrays_take_turns) {
  int* state = zeros<int>(256);
  launch_cooperatively(steps_right, 4, 32, state, 128);
  expect_each(state + 128, 128, [](int) { return 3; });
}

__global__ void steps_in_place_right(int* state, int n) {
  const cg::grid_group grid = cg::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 3; step++) {
    const int next = state[(i + 32) % n] + 1;
    grid.sync();
    state[i] = next;
    grid.sync();
  }
}
CASE(right_two_barriers_for_each_step) {
  int* state = zeros<int>(128);
  launch_cooperatively(steps_in_place_right, 4, 32, state, 128);
  expect_each(state, 128, [](int) { return 3; });
}

// The index of the buffer does not change: from the second step on, a step reads what it also writes.
__global__ void wrong_parity(int* state, int n) {
  const cg::grid_group grid = cg::this_grid();
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  for (int step = 0; step < 3; step++) {
    const int* old_state = state + (step > 0 ? 1 : 0) * n;
    int* new_state = state + n;
    const int next = old_state[(i + 32) % n] + 1;  // BUG races: state
    new_state[i] = next;                           // BUG races: state
    grid.sync();
  }
}
CASE(wrong_buffer_of_the_step) { launch_cooperatively(wrong_parity, 4, 32, zeros<int>(256), 128); }

// A barrier of the block orders only the threads of the block.
__global__ void publish(int* totals, int* out) {
  if (threadIdx.x == 0) totals[blockIdx.x] = blockIdx.x;  // BUG races: totals
  __syncthreads();
  out[blockIdx.x * blockDim.x + threadIdx.x] = totals[threadIdx.x % gridDim.x];  // BUG races: totals
}
CASE(wrong_barrier_of_the_block) {
  launch_cooperatively(publish, 4, 32, unwritten<int>(4), unwritten<int>(128));
}

__global__ void publish_right(int* totals, int* out) {
  const auto grid = cg::this_grid();
  if (threadIdx.x == 0) totals[grid.block_rank()] = blockIdx.x;
  grid.sync();
  out[grid.thread_rank()] = totals[threadIdx.x % gridDim.x];
}
CASE(right_barrier_of_the_grid) {
  int* out = unwritten<int>(128);
  launch_cooperatively(publish_right, 4, 32, unwritten<int>(4), out);
  expect_each(out, 128, [](int i) { return i % 32 % 4; });
}

// What is read between the halves of a barrier is not ordered by it.
__global__ void reads_between_halves(int* totals, int* out) {
  const auto grid = cg::this_grid();
  if (threadIdx.x == 0) totals[blockIdx.x] = blockIdx.x;  // BUG races: totals
  auto token = grid.barrier_arrive();
  const int other = totals[threadIdx.x % gridDim.x];  // BUG races: totals
  grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(token));
  out[grid.thread_rank()] = other;
}
CASE(wrong_read_before_the_wait) {
  launch_cooperatively(reads_between_halves, 4, 32, unwritten<int>(4), unwritten<int>(128));
}

__global__ void writes_between_halves(int* totals, int* out) {
  const auto grid = cg::this_grid();
  auto token = grid.barrier_arrive();
  if (threadIdx.x == 0) totals[blockIdx.x] = blockIdx.x;  // BUG races: totals
  grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(token));
  out[grid.thread_rank()] = totals[threadIdx.x % gridDim.x];  // BUG races: totals
}
CASE(wrong_write_after_the_arrival) {
  launch_cooperatively(writes_between_halves, 4, 32, unwritten<int>(4), unwritten<int>(128));
}

__global__ void halves_right(int* totals, int* out) {
  const auto grid = cg::this_grid();
  if (threadIdx.x == 0) totals[blockIdx.x] = blockIdx.x;
  auto token = grid.barrier_arrive();
  out[grid.thread_rank()] = 100;
  grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(token));
  out[grid.thread_rank()] += totals[threadIdx.x % gridDim.x];
}
CASE(right_own_work_between_the_halves) {
  int* out = unwritten<int>(128);
  launch_cooperatively(halves_right, 4, 32, unwritten<int>(4), out);
  expect_each(out, 128, [](int i) { return 100 + i % 32 % 4; });
}

// One thread of a block learns from a flag what another block did. The barrier passes it on to all blocks.
__global__ void flag_and_barrier_right(int* data, int* flag, int* out) {
  const auto grid = cg::this_grid();
  if (grid.thread_rank() == 0) {
    *data = 7;
    __threadfence();
    atomicExch(flag, 1);
  }
  if (blockIdx.x == 1 && threadIdx.x == 0)
    while (atomicAdd(flag, 0) == 0) {
    }
  grid.sync();
  out[grid.thread_rank()] = *data;
}
CASE(right_flag_before_a_barrier) {
  int* out = unwritten<int>(64);
  launch_cooperatively(flag_and_barrier_right, 2, 32, unwritten<int>(1), zeros<int>(1), out);
  expect_each(out, 64, [](int) { return 7; });
}

// Barriers of the block and of the grid in turns. Each thread reads what another thread of another block
// wrote.
__global__ void transpose_right(int* values, int* out) {
  __shared__ int tile[32];
  const auto grid = cg::this_grid();
  tile[threadIdx.x] = threadIdx.x;
  __syncthreads();
  values[grid.thread_rank()] = tile[31 - threadIdx.x];
  cg::sync(grid);
  out[grid.thread_rank()] = values[threadIdx.x * gridDim.x + blockIdx.x];
}
CASE(right_barriers_of_block_and_grid) {
  int* out = unwritten<int>(128);
  launch_cooperatively(transpose_right, 4, 32, unwritten<int>(128), out);
  expect_each(out, 128, [](int i) { return 31 - (i % 32 * 4 + i / 32) % 32; });
}

// ---- blocks that do not reach it

__global__ void idle_blocks_return(int* state, int n) {
  if (blockIdx.x * blockDim.x >= n) return;
  const cg::grid_group grid = cg::this_grid();
  state[grid.thread_rank()] = 1;
  grid.sync();  // BUG barriers
  state[grid.thread_rank()] += 1;
}
CASE(wrong_blocks_without_work_return) {
  launch_cooperatively(idle_blocks_return, 4, 32, zeros<int>(64), 64);
}

__global__ void idle_blocks_stay_right(int* state, int n) {
  const cg::grid_group grid = cg::this_grid();
  const bool has_work = grid.thread_rank() < n;
  if (has_work) state[grid.thread_rank()] = 1;
  grid.sync();
  if (has_work) state[grid.thread_rank()] += 1;
}
CASE(right_blocks_without_work_stay) {
  int* state = zeros<int>(64);
  launch_cooperatively(idle_blocks_stay_right, 4, 32, state, 64);
  expect_each(state, 64, [](int) { return 2; });
}

// Some threads wait for the grid, and the others for the block.
__global__ void two_kinds_of_barrier(int* out) {
  const cg::grid_group grid = cg::this_grid();
  if (threadIdx.x < 32)
    grid.sync();  // BUG barriers
  else
    __syncthreads();  // BUG barriers
  out[grid.thread_rank()] = 1;
}
CASE(wrong_two_kinds_of_barrier) { launch_cooperatively(two_kinds_of_barrier, 2, 64, unwritten<int>(128)); }

__global__ void syncs_grid(int* out) {
  cg::this_grid().sync();  // BUG barriers
  out[blockIdx.x] = 1;
}
CASE(wrong_ordinary_launch) { syncs_grid<<<2, 32>>>(unwritten<int>(2)); }

__global__ void syncs_if_valid_right(int* out) {
  const auto grid = cg::this_grid();
  if (grid.is_valid()) grid.sync();
  if (threadIdx.x == 0) out[blockIdx.x] = 1;
}
CASE(right_ordinary_launch_without_a_barrier) {
  int* out = unwritten<int>(2);
  syncs_if_valid_right<<<2, 32>>>(out);
  expect_each(out, 2, [](int) { return 1; });
}

__global__ void arrives_twice(int* out) {
  const auto grid = cg::this_grid();
  auto first = grid.barrier_arrive();
  auto second = grid.barrier_arrive();  // BUG barriers
  grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(second));
  out[grid.thread_rank()] = 1;
}
CASE(wrong_two_arrivals) { launch_cooperatively(arrives_twice, 2, 32, unwritten<int>(64)); }

__global__ void arrives_each_step_right(int* out) {
  const auto grid = cg::this_grid();
  for (int step = 0; step < 3; step++) {
    auto token = grid.barrier_arrive();
    grid.barrier_wait(static_cast<cg::grid_group::arrival_token&&>(token));
  }
  out[grid.thread_rank()] = 1;
}
CASE(right_one_wait_for_each_arrival) {
  int* out = unwritten<int>(64);
  launch_cooperatively(arrives_each_step_right, 2, 32, out);
  expect_each(out, 64, [](int) { return 1; });
}

__global__ void some_return(int* out) {
  const cg::grid_group grid = cg::this_grid();
  if (threadIdx.x >= 20) return;
  grid.sync();  // WARNING barriers
  out[blockIdx.x * 20 + threadIdx.x] = 1;
}
CASE(warned_threads_return_before_the_grid) { launch_cooperatively(some_return, 2, 32, unwritten<int>(40)); }

CASE(warned_more_blocks_than_the_device_runs_at_once) {
  int* out = unwritten<int>(1);
  void* arguments[] = {&out};
  const cudaError_t error =
      cudaLaunchCooperativeKernel(some_return, 1 << 20, 32, arguments);  // WARNING launch: some_return
  expect(error == cudaErrorCooperativeLaunchTooLarge);
  cudaGetLastError();
}

int main(int words, char** word) { return run_cases(words, word); }
