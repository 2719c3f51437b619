// Stands for torch's header of this name. A launch has ended when it returns, whatever its stream is.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "c10/cuda/CUDAFunctions.h"

EMULATOR_BEGIN
namespace c10::cuda {

class CUDAStream {
 public:
  explicit CUDAStream(cudaStream_t stream = nullptr, DeviceIndex device = -1)
      : stream_(stream), device_(device < 0 ? current_device() : device) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream(); }
  Device device() const { return Device(DeviceType::CPU); }
  DeviceIndex device_index() const { return device_; }
  StreamId id() const { return 0; }
  bool query() const { return true; }
  void synchronize() const {}
  bool operator==(const CUDAStream& other) const noexcept { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const noexcept { return stream_ != other.stream_; }

 private:
  cudaStream_t stream_;
  DeviceIndex device_;
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  return CUDAStream(emulator::current_stream(device < 0 ? current_device() : device), device);
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex device = -1) { return CUDAStream(nullptr, device); }
inline CUDAStream getStreamFromPool(bool /*high_priority*/ = false, DeviceIndex device = -1) {
  return CUDAStream(nullptr, device);
}
inline CUDAStream getStreamFromPool(int /*priority*/, DeviceIndex device = -1) {
  return CUDAStream(nullptr, device);
}
inline void setCurrentCUDAStream(CUDAStream) {}

}  // namespace c10::cuda
EMULATOR_END
