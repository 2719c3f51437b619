// What blocks do that other blocks, or the host, can notice. Without checks, they run on all cores of the
// host; what they compute and print is the same, in the same order.
#include <cuda_runtime.h>

#include <cstdio>

constexpr int kBlocks = 64, kThreads = 64;

__device__ float total;
__device__ int ticket, lock, turn, guarded;

// Enough work that blocks on different cores overlap; later blocks are shorter and overtake earlier ones.
__device__ float work() {
  float sum = 0;
  for (int i = 0; i < 200 * (kBlocks - int(blockIdx.x)); i++) sum += 1.0f / float(1 + i);
  return sum + float(threadIdx.x);
}

// Rounding makes the sum depend on the order of its terms.
__global__ void sum_in_any_order() {
  const float mine = work();
  atomicAdd(&total, mine);
}

__global__ void take_tickets(int* blocks) {
  work();
  if (threadIdx.x == 0) blocks[atomicAdd(&ticket, 1)] = int(blockIdx.x);
}

__global__ void print_blocks() {
  work();
  if (threadIdx.x == 0 && blockIdx.x % 8 == 7) printf("block %d of %d\n", blockIdx.x, gridDim.x);
  if (threadIdx.x == 0 && blockIdx.x == 20) printf("a line without arguments\n");
}

// The last block to end adds the parts up, as in NVIDIA's threadFenceReduction.
__global__ void sum_in_last_block(float* parts, float* sum) {
  __shared__ float values[kThreads];
  __shared__ bool is_last;
  values[threadIdx.x] = work();
  for (int half = kThreads / 2; half > 0; half /= 2) {
    __syncthreads();
    if (threadIdx.x < half) values[threadIdx.x] += values[threadIdx.x + half];
  }
  if (threadIdx.x == 0) {
    parts[blockIdx.x] = values[0];
    __threadfence();
    is_last = atomicAdd(&ticket, 1) == kBlocks - 1;
  }
  __syncthreads();
  if (!is_last || threadIdx.x > 0) return;
  for (int i = 0; i < kBlocks; i++) *sum += reinterpret_cast<volatile float*>(parts)[i];
}

__global__ void lock_and_add() {
  work();
  if (threadIdx.x > 0) return;
  while (atomicCAS(&lock, 0, 1) != 0) {
  }
  __threadfence();
  *const_cast<volatile int*>(&guarded) = *const_cast<volatile int*>(&guarded) + 1;
  __threadfence();
  atomicExch(&lock, 0);
}

// All blocks but the first wait for one that starts later: their order is the reverse.
__global__ void wait_for_later_blocks(int* blocks) {
  if (threadIdx.x > 0 || blockIdx.x == 0 || blockIdx.x > 8) return;
  while (atomicAdd(&turn, 0) != 8 - int(blockIdx.x)) {
  }
  blocks[8 - blockIdx.x] = int(blockIdx.x);
  __threadfence();
  atomicAdd(&turn, 1);
}

__global__ void allocate(int** rows) {
  work();
  if (threadIdx.x > 0) return;
  rows[blockIdx.x] = new int[4];
  for (int i = 0; i < 4; i++) rows[blockIdx.x][i] = int(4 * blockIdx.x) + i;
}
__global__ void add_up_and_free(int** rows, int* sums) {
  if (threadIdx.x > 0) return;
  sums[blockIdx.x] = 0;
  for (int i = 0; i < 4; i++) sums[blockIdx.x] += rows[blockIdx.x][i];
  delete[] rows[blockIdx.x];
}

// Kernels that blocks on different cores launch run in the order of these blocks.
__global__ void print_launcher(int block) {
  if (blockIdx.x == gridDim.x - 1) printf("launched by block %d\n", block);
}
__global__ void launch_kernels() {
  work();
  if (threadIdx.x == 0 && blockIdx.x % 8 == 7) print_launcher<<<4, 1>>>(blockIdx.x);
}

void print(const char* what, const int* values, int count) {
  std::printf("%s", what);
  for (int i = 0; i < count; i++) std::printf(" %d", values[i]);
  std::printf("\n");
}

int main() {
  int* blocks;
  float *parts, *sum;
  int** rows;
  cudaMallocManaged(&blocks, kBlocks * sizeof(int));
  cudaMalloc(&parts, kBlocks * sizeof(float));
  cudaMallocManaged(&sum, sizeof(float));
  cudaMalloc(&rows, kBlocks * sizeof(int*));
  *sum = 0;

  for (int repetition = 0; repetition < 5; repetition++) {
    sum_in_any_order<<<kBlocks, kThreads>>>();
    float value;
    cudaMemcpyFromSymbol(&value, total, sizeof(value));
    std::printf("sum %a\n", value);
  }
  take_tickets<<<kBlocks, kThreads>>>(blocks);
  cudaDeviceSynchronize();
  print("tickets", blocks, kBlocks);
  print_blocks<<<kBlocks, kThreads>>>();
  const int zero = 0;
  cudaMemcpyToSymbol(ticket, &zero, sizeof(zero));
  sum_in_last_block<<<kBlocks, kThreads>>>(parts, sum);
  cudaDeviceSynchronize();
  std::printf("sum of the last block %a\n", *sum);
  lock_and_add<<<kBlocks, kThreads>>>();
  cudaDeviceSynchronize();
  int value;
  cudaMemcpyFromSymbol(&value, guarded, sizeof(value));
  std::printf("%d blocks have had the lock\n", value);
  wait_for_later_blocks<<<kBlocks, kThreads>>>(blocks);
  cudaDeviceSynchronize();
  print("waited", blocks, 8);
  allocate<<<kBlocks, kThreads>>>(rows);
  add_up_and_free<<<kBlocks, kThreads>>>(rows, blocks);
  cudaDeviceSynchronize();
  print("rows", blocks, kBlocks);

  launch_kernels<<<kBlocks, kThreads>>>();
  cudaDeviceSynchronize();

  cudaFree(blocks);
  cudaFree(parts);
  cudaFree(sum);
  cudaFree(rows);
  const cudaError_t error = cudaGetLastError();
  std::printf("%s\n", cudaGetErrorString(error));
  return error != cudaSuccess;
}
