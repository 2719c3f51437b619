if (threadIdx.x == 0) {
  const cuda::atomic_ref<unsigned, cuda::thread_scope_device> counter(*arrivals);
  counter.fetch_add(1, cuda::memory_order_release);
  while (counter.load(cuda::memory_order_acquire) < (t + 1) * gridDim.x) {
  }
}
__syncthreads();
