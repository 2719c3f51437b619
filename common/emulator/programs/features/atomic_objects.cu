// libcu++: cuda::atomic and cuda::atomic_ref of at most 8 bytes, with orders and scopes
// Support: approximate: each load counts as an acquisition, and a scope that is too narrow is not found
#include <cuda/atomic>

#include <cstdio>

using device_ref = cuda::atomic_ref<int, cuda::thread_scope_device>;

// Each block hands a value to the next one, in the order of a ticket: release and acquire order the accesses.
__device__ cuda::atomic<int, cuda::thread_scope_device> tickets;
__device__ cuda::atomic<int, cuda::thread_scope_device> turn;

__global__ void relay(int* value) {
  if (threadIdx.x != 0) return;
  const int ticket = tickets.fetch_add(1, cuda::memory_order_relaxed);
  while (turn.load(cuda::memory_order_acquire) != ticket) {
  }
  *value = *value * 2 + 1;
  turn.store(ticket + 1, cuda::memory_order_release);
}

// A maximum, a sum and a counter by references to ordinary variables.
__global__ void combine(int* largest, int* sum, int* odd, const int* in) {
  const int value = in[blockIdx.x * blockDim.x + threadIdx.x];
  device_ref(*largest).fetch_max(value, cuda::memory_order_relaxed);
  device_ref(*sum).fetch_add(value, cuda::memory_order_relaxed);
  device_ref counter(*odd);
  int seen = counter.load(cuda::memory_order_relaxed);
  while (value % 2 && !counter.compare_exchange_weak(seen, seen + 1, cuda::memory_order_relaxed)) {
  }
}

int main() {
  int *d_value, value = 0;
  cudaMalloc(&d_value, sizeof(int));
  cudaMemcpy(d_value, &value, sizeof(int), cudaMemcpyHostToDevice);
  relay<<<8, 32>>>(d_value);
  cudaMemcpy(&value, d_value, sizeof(int), cudaMemcpyDeviceToHost);
  if (value != 255) return std::fprintf(stderr, "the value is %d, expected 255\n", value), 1;

  int in[256], *d_in, *d_out, out[3] = {0, 0, 0}, expected[3] = {0, 0, 0};
  for (int i = 0; i < 256; i++) {
    in[i] = i * 37 % 251;
    expected[0] = in[i] > expected[0] ? in[i] : expected[0];
    expected[1] += in[i];
    expected[2] += in[i] % 2;
  }
  cudaMalloc(&d_in, sizeof(in));
  cudaMalloc(&d_out, sizeof(out));
  cudaMemcpy(d_in, in, sizeof(in), cudaMemcpyHostToDevice);
  cudaMemcpy(d_out, out, sizeof(out), cudaMemcpyHostToDevice);
  combine<<<4, 64>>>(d_out, d_out + 1, d_out + 2, d_in);
  cudaMemcpy(out, d_out, sizeof(out), cudaMemcpyDeviceToHost);
  for (int i = 0; i < 3; i++)
    if (out[i] != expected[i])
      return std::fprintf(stderr, "result %d is %d, expected %d\n", i, out[i], expected[i]), 1;
  cudaFree(d_value), cudaFree(d_in), cudaFree(d_out);
}
