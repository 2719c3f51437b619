__threadfence();
__syncthreads();
if (threadIdx.x == 0) {
  __threadfence();
  atomicAdd(arrivals, 1);
  while (*static_cast<volatile unsigned*>(arrivals) < (t + 1) * gridDim.x) {
  }
  __threadfence();
}
__syncthreads();
