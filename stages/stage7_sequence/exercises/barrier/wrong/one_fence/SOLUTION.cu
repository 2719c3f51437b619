__syncthreads();
if (threadIdx.x == 0) {
  __threadfence();
  atomicAdd(arrivals, 1);
  while (atomicAdd(arrivals, 0) < (t + 1) * gridDim.x) {
  }
}
__syncthreads();
