// Multiplies a tensor by a factor, on the tensor's device.
#pragma once

#include "tensor.cuh"

// BEGIN SOLUTION guard: a class that makes a device current, and the last one again at the end of its scope.
class DeviceGuard {
 public:
  explicit DeviceGuard(int device) : last_(current_device()) { check(cudaSetDevice(device)); }
  DeviceGuard(const DeviceGuard&) = delete;
  DeviceGuard& operator=(const DeviceGuard&) = delete;
  ~DeviceGuard() { cudaSetDevice(last_); }

 private:
  int last_;
};
// BEGIN STARTER
// class DeviceGuard {
//  public:
//   explicit DeviceGuard(int device) {}
// };
// END STARTER
// END SOLUTION

// Returns factor * x, on the device of x. Throws std::runtime_error if there is not enough memory for it.
inline Tensor scale(const Tensor& x, float factor) {
  // BEGIN SOLUTION device: until scale returns, the device of x is the current one.
  const DeviceGuard guard(x.device);
  // END SOLUTION
  Tensor out = allocate(x.count);
  const int threads = 64;
  scale_kernel<<<(x.count + threads - 1) / threads, threads, 0, current_stream(current_device())>>>(
      out.memory.get(), x.memory.get(), factor, x.count);
  check(cudaGetLastError());
  return out;
}
