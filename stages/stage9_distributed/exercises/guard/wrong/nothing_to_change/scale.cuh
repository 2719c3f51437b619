// Multiplies a tensor by a factor, on the tensor's device.
#pragma once

#include "tensor.cuh"

// Makes a device current, and the last one again at the end of its scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : before_(current_device()), changes_(device != before_) {
    if (changes_) check(cudaSetDevice(device));
  }
  ~DeviceGuard() {
    if (changes_) cudaSetDevice(before_);
  }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;

 private:
  const int before_;
  const bool changes_;
};

// Returns factor * x, on the device of x. Throws std::runtime_error if there is not enough memory for it.
inline Tensor scale(const Tensor& x, float factor) {
  const DeviceGuard guard(x.device);
  Tensor out = allocate(x.count);
  const int threads = 64;
  scale_kernel<<<(x.count + threads - 1) / threads, threads, 0, current_stream(x.device)>>>(
      out.memory.get(), x.memory.get(), factor, x.count);
  check(cudaGetLastError());
  return out;
}
