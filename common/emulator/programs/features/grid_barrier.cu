// Cooperative launches: a barrier of the whole grid, for kernels that keep their blocks for many steps
// Support: yes
#include <cooperative_groups.h>

#include <cstdio>
#include <vector>

namespace cg = cooperative_groups;

// A recurrence: in each step, each unit of the state becomes a sum of all units. Each block owns some units
// for all steps, and keeps its rows of the matrix in shared memory. Two copies of the state take turns.
template <int kUnits>
__global__ void steps(float* state, const float* matrix, int size, int count) {
  __shared__ float rows[kUnits][64];
  const cg::grid_group grid = cg::this_grid();
  const int first = blockIdx.x * kUnits;
  for (int i = threadIdx.x; i < kUnits * size; i += blockDim.x)
    rows[i / size][i % size] = matrix[first * size + i];
  __syncthreads();
  for (int step = 0; step < count; step++) {
    const float* old_state = state + step % 2 * size;
    float* new_state = state + (step + 1) % 2 * size;
    if (threadIdx.x < kUnits) {
      float sum = 0;
      for (int k = 0; k < size; k++) sum += rows[threadIdx.x][k] * old_state[k];
      new_state[first + threadIdx.x] = sum;
    }
    grid.sync();
  }
}

// The same barrier in two halves: what is between them needs no other block.
__global__ void in_two_halves(int* values, int* sums) {
  const cg::grid_group grid = cg::this_grid();
  if (threadIdx.x == 0) values[grid.block_rank()] = blockIdx.x + 1;
  cg::grid_group::arrival_token token = grid.barrier_arrive();
  const int own = 1000 * threadIdx.x;
  grid.barrier_wait(std::move(token));
  int sum = own;
  for (unsigned i = 0; i < grid.num_blocks(); i++) sum += values[i];
  sums[grid.thread_rank()] = sum;
}

int main() {
  constexpr int kSize = 64, kUnits = 8, kSteps = 5;
  std::vector<float> matrix(kSize * kSize), expected(kSize), next(kSize), got(kSize);
  for (int i = 0; i < kSize * kSize; i++) matrix[i] = (i * 7 % 11 - 5) / 64.0f;
  for (int i = 0; i < kSize; i++) expected[i] = float(i % 5 - 2);

  float *d_state, *d_matrix;
  cudaMalloc(&d_state, 2 * kSize * sizeof(float));
  cudaMalloc(&d_matrix, matrix.size() * sizeof(float));
  cudaMemcpy(d_state, expected.data(), kSize * sizeof(float), cudaMemcpyHostToDevice);
  cudaMemcpy(d_matrix, matrix.data(), matrix.size() * sizeof(float), cudaMemcpyHostToDevice);
  int size = kSize, count = kSteps;
  void* arguments[] = {&d_state, &d_matrix, &size, &count};
  cudaError_t error = cudaLaunchCooperativeKernel((void*)steps<kUnits>, kSize / kUnits, 32, arguments);
  cudaMemcpy(got.data(), d_state + kSteps % 2 * kSize, kSize * sizeof(float), cudaMemcpyDeviceToHost);
  for (int step = 0; step < kSteps; step++) {
    for (int i = 0; i < kSize; i++) {
      next[i] = 0;
      for (int k = 0; k < kSize; k++) next[i] += matrix[i * kSize + k] * expected[k];
    }
    expected = next;
  }
  for (int i = 0; i < kSize; i++)
    if (error || !(std::abs(got[i] - expected[i]) <= 1e-5f))
      return std::fprintf(stderr, "unit %d is %g, expected %g (%s)\n", i, got[i], expected[i],
                          cudaGetErrorString(error)),
             1;

  int *values, *sums, host[4 * 64];
  cudaMalloc(&values, 4 * sizeof(int));
  cudaMalloc(&sums, sizeof(host));
  void* both[] = {&values, &sums};
  error = cudaLaunchCooperativeKernel(in_two_halves, dim3(4), dim3(64), both, 0, nullptr);
  cudaMemcpy(host, sums, sizeof(host), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 4 * 64; i++)
    if (error || host[i] != 10 + 1000 * (i % 64))
      return std::fprintf(stderr, "sum %d is %d, expected %d\n", i, host[i], 10 + 1000 * (i % 64)), 1;

  cudaFree(d_state), cudaFree(d_matrix), cudaFree(values), cudaFree(sums);
}
