// libcu++: cuda::device::barrier_native_handle, barrier_arrive_tx, and copies whose bytes a barrier counts
// Support: yes
#include <cuda/barrier>
#include <cuda/ptx>

#include <cstdio>
#include <utility>

constexpr int kCount = 128;
using Barrier = cuda::barrier<cuda::thread_scope_block>;

__global__ void reverse(int* out, const int* in) {
  __shared__ alignas(16) int tile[kCount];
  __shared__ Barrier barrier;
  if (threadIdx.x == 0) {
    init(&barrier, blockDim.x);
    cuda::ptx::fence_proxy_async(cuda::ptx::space_shared);
  }
  __syncthreads();
  Barrier::arrival_token token;
  if (threadIdx.x == 0) {
    cuda::device::memcpy_async_tx(tile, in, cuda::aligned_size_t<16>(sizeof(tile)), barrier);
    token = cuda::device::barrier_arrive_tx(barrier, 1, sizeof(tile));
  } else {
    token = barrier.arrive();
  }
  barrier.wait(std::move(token));
  out[threadIdx.x] = tile[kCount - 1 - threadIdx.x];
  // The same barrier, by its handle.
  uint64_t* handle = cuda::device::barrier_native_handle(barrier);
  const uint64_t state = cuda::ptx::mbarrier_arrive(handle);
  while (!cuda::ptx::mbarrier_try_wait(handle, state)) {
  }
}

int main() {
  int *out, *in;
  cudaMallocManaged(&out, kCount * sizeof(int));
  cudaMallocManaged(&in, kCount * sizeof(int));
  for (int i = 0; i < kCount; i++) in[i] = i;
  reverse<<<1, kCount>>>(out, in);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  int wrong = 0;
  for (int i = 0; i < kCount; i++)
    if (out[i] != kCount - 1 - i && !wrong++) std::fprintf(stderr, "got %d\n", out[i]);
  cudaFree(out);
  cudaFree(in);
  return wrong != 0;
}
