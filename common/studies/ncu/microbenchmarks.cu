// Small kernels, each with its counts worked out by hand. The lines `by hand:` are read by the tests and by
// `python -m common ncu`, which compares them with the emulator and with Nsight Compute.
//
// Unless stated otherwise, a launch has two blocks of 64 threads, so 4 warps. Every array begins at a
// multiple of 256 bytes. A sector is 32 bytes, 8 floats, so a warp that reads 32 neighbouring floats needs 4.
#include <cstdio>

constexpr int kBlocks = 2, kThreads = 64;

__device__ int thread() { return int(blockIdx.x * blockDim.x + threadIdx.x); }

// by hand: global load: 4 requests, 128 lanes, 16 sectors, 16 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void coalesced(float* y, const float* x) { y[thread()] = x[thread()]; }

// A warp reads every second of 64 neighbouring floats: 8 sectors, of which it uses half.
// by hand: global load: 4 requests, 128 lanes, 32 sectors, 16 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void stride_2(float* y, const float* x) { y[thread()] = x[2 * thread()]; }

// Each lane accesses a separate sector.
// by hand: global load: 4 requests, 128 lanes, 128 sectors, 16 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void stride_32(float* y, const float* x) { y[thread()] = x[32 * thread()]; }

// 128 bytes that begin 4 bytes late end in a fifth sector.
// by hand: global load: 4 requests, 128 lanes, 20 sectors, 16 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void misaligned(float* y, const float* x) { y[thread()] = x[thread() + 1]; }

// All lanes of a warp read the same 4 bytes.
// by hand: global load: 4 requests, 128 lanes, 4 sectors, 4 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void broadcast(float* y, const float* x) { y[thread()] = x[thread() / 32]; }

// 256 bytes a warp.
// by hand: global load: 4 requests, 128 lanes, 32 sectors, 32 ideal
// by hand: global store: 4 requests, 128 lanes, 32 sectors, 32 ideal
__global__ void doubles(double* y, const double* x) { y[thread()] = x[thread()]; }

// 512 bytes a warp, in one request.
// by hand: global load: 4 requests, 128 lanes, 64 sectors, 64 ideal
// by hand: global store: 4 requests, 128 lanes, 64 sectors, 64 ideal
__global__ void vectors(float4* y, const float4* x) { y[thread()] = x[thread()]; }

// 32 bytes a warp.
// by hand: global load: 4 requests, 128 lanes, 4 sectors, 4 ideal
// by hand: global store: 4 requests, 128 lanes, 4 sectors, 4 ideal
__global__ void bytes(char* y, const char* x) { y[thread()] = x[thread()]; }

// Half of the lanes, 64 bytes.
// by hand: global load: 4 requests, 64 lanes, 8 sectors, 8 ideal
// by hand: global store: 4 requests, 64 lanes, 8 sectors, 8 ideal
__global__ void half_of_the_lanes(float* y, const float* x) {
  if (threadIdx.x % 32 < 16) y[thread()] = x[thread()];
}

// Half of the lanes as well, but all 4 sectors.
// by hand: global load: 4 requests, 64 lanes, 16 sectors, 8 ideal
// by hand: global store: 4 requests, 64 lanes, 16 sectors, 8 ideal
__global__ void every_other_lane(float* y, const float* x) {
  if (threadIdx.x % 2 == 0) y[thread()] = x[thread()];
}

// Three rows of 70 floats, three warps each. Row 0 begins with a sector: 4 + 4 + 1 sectors. Row 1 begins at
// byte 280, 24 bytes into one: 5 + 5 + 2, for its last 6 floats begin at byte 536 and cross byte 544. Row 2
// begins at byte 560: 5 + 5 + 2, its last 6 floats begin at byte 816 and cross byte 832.
// by hand: global load: 9 requests, 210 lanes, 33 sectors, 27 ideal
// by hand: global store: 9 requests, 210 lanes, 33 sectors, 27 ideal
__global__ void odd_rows(float* y, const float* x) {
  const int column = int(threadIdx.x), row = int(blockIdx.x);
  if (column < 70) y[row * 70 + column] = x[row * 70 + column];
}

// One block of 32 x 32 threads: row by row in, column by column out. The warps write the tile along its rows,
// and read it along its columns: 32 words of one bank.
// by hand: global load: 32 requests, 1024 lanes, 128 sectors, 128 ideal
// by hand: shared store: 32 requests, 1024 lanes, 32 wavefronts, 0 conflicts
// by hand: shared load: 32 requests, 1024 lanes, 1024 wavefronts, 992 conflicts
// by hand: global store: 32 requests, 1024 lanes, 128 sectors, 128 ideal
__global__ void transposed(float* y, const float* x) {
  __shared__ float tile[32][32];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// One more column, and a column lies in 32 banks.
// by hand: global load: 32 requests, 1024 lanes, 128 sectors, 128 ideal
// by hand: shared store: 32 requests, 1024 lanes, 32 wavefronts, 0 conflicts
// by hand: shared load: 32 requests, 1024 lanes, 32 wavefronts, 0 conflicts
// by hand: global store: 32 requests, 1024 lanes, 128 sectors, 128 ideal
__global__ void transposed_padded(float* y, const float* x) {
  __shared__ float tile[32][33];
  tile[threadIdx.y][threadIdx.x] = x[threadIdx.y * 32 + threadIdx.x];
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}

// Without shared memory one side is scattered.
// by hand: global load: 32 requests, 1024 lanes, 128 sectors, 128 ideal
// by hand: global store: 32 requests, 1024 lanes, 1024 sectors, 128 ideal
__global__ void transposed_naively(float* y, const float* x) {
  y[threadIdx.x * 32 + threadIdx.y] = x[threadIdx.y * 32 + threadIdx.x];
}

// Two words in every second bank.
// by hand: global load: 8 requests, 256 lanes, 32 sectors, 32 ideal
// by hand: shared store: 8 requests, 256 lanes, 8 wavefronts, 0 conflicts
// by hand: shared load: 4 requests, 128 lanes, 8 wavefronts, 4 conflicts
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void shared_stride_2(float* y, const float* x) {
  __shared__ float kept[2 * kThreads];
  kept[threadIdx.x] = x[thread()];
  kept[threadIdx.x + kThreads] = x[thread() + kBlocks * kThreads];
  __syncthreads();
  y[thread()] = kept[2 * threadIdx.x];
}

// All lanes read the same word, which is broadcast to them.
// by hand: global load: 4 requests, 128 lanes, 16 sectors, 16 ideal
// by hand: shared store: 4 requests, 128 lanes, 4 wavefronts, 0 conflicts
// by hand: shared load: 4 requests, 128 lanes, 4 wavefronts, 0 conflicts
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void shared_broadcast(float* y, const float* x) {
  __shared__ float kept[kThreads];
  kept[threadIdx.x] = x[thread()];
  __syncthreads();
  y[thread()] = kept[blockIdx.x];
}

// 256 bytes are twice what the banks deliver at once: two halves of a warp, without conflicts.
// by hand: global load: 4 requests, 128 lanes, 32 sectors, 32 ideal
// by hand: shared store: 4 requests, 128 lanes, 8 wavefronts, 0 conflicts
// by hand: shared load: 4 requests, 128 lanes, 8 wavefronts, 0 conflicts
// by hand: global store: 4 requests, 128 lanes, 32 sectors, 32 ideal
__global__ void shared_doubles(double* y, const double* x) {
  __shared__ double kept[kThreads];
  kept[threadIdx.x] = x[thread()];
  __syncthreads();
  y[thread()] = kept[kThreads - 1 - threadIdx.x];
}

// 512 bytes: four quarters.
// by hand: global load: 4 requests, 128 lanes, 64 sectors, 64 ideal
// by hand: shared store: 4 requests, 128 lanes, 16 wavefronts, 0 conflicts
// by hand: shared load: 4 requests, 128 lanes, 16 wavefronts, 0 conflicts
// by hand: global store: 4 requests, 128 lanes, 64 sectors, 64 ideal
__global__ void shared_vectors(float4* y, const float4* x) {
  __shared__ float4 kept[kThreads];
  kept[threadIdx.x] = x[thread()];
  __syncthreads();
  y[thread()] = kept[kThreads - 1 - threadIdx.x];
}

// Each lane adds to a separate sector, and the result is not used.
// by hand: global load: 4 requests, 128 lanes, 16 sectors, 16 ideal
// by hand: global atomic: 4 requests, 128 lanes, 128 sectors, 16 ideal
__global__ void scattered_atomics(float* y, const float* x) { atomicAdd(&y[32 * thread()], x[thread()]); }

// 64 iterations of a warp, and 1 more for its odd lanes, which access all 4 sectors.
// by hand: global load: 260 requests, 8256 lanes, 1040 sectors, 1032 ideal
// by hand: global store: 4 requests, 128 lanes, 16 sectors, 16 ideal
__global__ void unequal_loop(float* y, const float* x) {
  float sum = 0;
  for (int k = 0; k < 64 + int(threadIdx.x % 2); k++) sum += x[k * kBlocks * kThreads + thread()];
  y[thread()] = sum;
}

// A structure of 12 bytes that may begin at any multiple of 4 is copied word by word: each time the lanes are
// 12 bytes apart, and their words in 12 sectors.
// by hand: global load: 12 requests, 384 lanes, 144 sectors, 48 ideal
// by hand: global store: 12 requests, 384 lanes, 144 sectors, 48 ideal
struct Three {
  float x, y, z;
};
__global__ void structures(Three* y, const Three* x) { y[thread()] = x[thread()]; }

// First the even lanes, then, after a barrier, the odd ones.
// by hand: global load: 8 requests, 128 lanes, 32 sectors, 16 ideal
// by hand: global store: 8 requests, 128 lanes, 32 sectors, 16 ideal
__global__ void in_turns(float* y, const float* x) {
  for (int turn = 0; turn < 2; turn++) {
    if (threadIdx.x % 2 == turn) y[thread()] = x[thread()];
    __syncthreads();
  }
}

// The same with the barrier of a warp.
// by hand: global load: 8 requests, 128 lanes, 32 sectors, 16 ideal
// by hand: global store: 8 requests, 128 lanes, 32 sectors, 16 ideal
__global__ void in_turns_of_a_warp(float* y, const float* x) {
  for (int turn = 0; turn < 2; turn++) {
    if (threadIdx.x % 2 == turn) y[thread()] = x[thread()];
    __syncwarp();
  }
}

int main() {
  constexpr int kBytes = 1 << 16;
  float *x, *y;
  cudaMalloc(&x, kBytes);
  cudaMalloc(&y, kBytes);
  cudaMemset(x, 0, kBytes);
  cudaMemset(y, 0, kBytes);

  coalesced<<<kBlocks, kThreads>>>(y, x);
  stride_2<<<kBlocks, kThreads>>>(y, x);
  stride_32<<<kBlocks, kThreads>>>(y, x);
  misaligned<<<kBlocks, kThreads>>>(y, x);
  broadcast<<<kBlocks, kThreads>>>(y, x);
  doubles<<<kBlocks, kThreads>>>(reinterpret_cast<double*>(y), reinterpret_cast<const double*>(x));
  vectors<<<kBlocks, kThreads>>>(reinterpret_cast<float4*>(y), reinterpret_cast<const float4*>(x));
  bytes<<<kBlocks, kThreads>>>(reinterpret_cast<char*>(y), reinterpret_cast<const char*>(x));
  half_of_the_lanes<<<kBlocks, kThreads>>>(y, x);
  every_other_lane<<<kBlocks, kThreads>>>(y, x);
  odd_rows<<<3, 96>>>(y, x);
  transposed<<<1, dim3(32, 32)>>>(y, x);
  transposed_padded<<<1, dim3(32, 32)>>>(y, x);
  transposed_naively<<<1, dim3(32, 32)>>>(y, x);
  shared_stride_2<<<kBlocks, kThreads>>>(y, x);
  shared_broadcast<<<kBlocks, kThreads>>>(y, x);
  shared_doubles<<<kBlocks, kThreads>>>(reinterpret_cast<double*>(y), reinterpret_cast<const double*>(x));
  shared_vectors<<<kBlocks, kThreads>>>(reinterpret_cast<float4*>(y), reinterpret_cast<const float4*>(x));
  scattered_atomics<<<kBlocks, kThreads>>>(y, x);
  unequal_loop<<<kBlocks, kThreads>>>(y, x);
  structures<<<kBlocks, kThreads>>>(reinterpret_cast<Three*>(y), reinterpret_cast<const Three*>(x));
  in_turns<<<kBlocks, kThreads>>>(y, x);
  in_turns_of_a_warp<<<kBlocks, kThreads>>>(y, x);

  const cudaError_t error = cudaDeviceSynchronize();
  if (error != cudaSuccess) std::printf("%s\n", cudaGetErrorString(error));
  cudaFree(x);
  cudaFree(y);
  return error != cudaSuccess;
}
