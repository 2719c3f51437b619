const size_t bytes = x.count * sizeof(float);
Tensor copy;
{
  const DeviceGuard guard(0);
  copy = allocate(x.count);
  check(cudaMemcpy(copy.memory.get(), x.memory.get(), bytes, cudaMemcpyDefault));
  check(cudaDeviceSynchronize());
  scale_kernel<<<(x.count + threads - 1) / threads, threads, 0, current_stream(0)>>>(copy.memory.get(), copy.memory.get(),
                                                                                    factor, x.count);
  check(cudaDeviceSynchronize());
}
const DeviceGuard guard(x.device);
Tensor out = allocate(x.count);
check(cudaMemcpy(out.memory.get(), copy.memory.get(), bytes, cudaMemcpyDefault));
check(cudaDeviceSynchronize());
return out;
