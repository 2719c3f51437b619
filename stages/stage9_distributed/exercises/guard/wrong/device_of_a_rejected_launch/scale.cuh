// Multiplies a tensor by a factor, on the tensor's device.
#pragma once

#include "tensor.cuh"

class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : previous_(current_device()) { check(cudaSetDevice(device)); }
  ~DeviceGuard() { cudaSetDevice(previous_); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  const int previous_;
};

// Memory on a device; the caller's device stays current.
inline Tensor allocate_on(int device, int64_t count) {
  const DeviceGuard guard(device);
  return allocate(count);
}

// Returns factor * x, on the device of x. Throws std::runtime_error if there is not enough memory for it.
inline Tensor scale(const Tensor& x, float factor) {
  const int caller = current_device();
  Tensor out = allocate_on(x.device, x.count);
  check(cudaSetDevice(x.device));
  const int threads = 64;
  scale_kernel<<<(x.count + threads - 1) / threads, threads, 0, current_stream(current_device())>>>(
      out.memory.get(), x.memory.get(), factor, x.count);
  check(cudaGetLastError());
  check(cudaSetDevice(caller));
  return out;
}
