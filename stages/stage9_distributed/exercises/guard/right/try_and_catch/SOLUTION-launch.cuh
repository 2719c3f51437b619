const int last = current_device();
try {
  check(cudaSetDevice(x.device));
  Tensor out = allocate(x.count);
  scale_kernel<<<(x.count + threads - 1) / threads, threads, 0, current_stream(x.device)>>>(
      out.memory.get(), x.memory.get(), factor, x.count);
  check(cudaGetLastError());
  check(cudaSetDevice(last));
  return out;
} catch (...) {
  cudaSetDevice(last);
  throw;
}
