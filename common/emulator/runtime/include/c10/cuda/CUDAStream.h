// Stands for torch's header of this name. A launch has ended when it returns, whatever its stream is.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "c10/cuda/CUDAFunctions.h"

EMULATOR_BEGIN
namespace c10::cuda {

class CUDAStream {
 public:
  CUDAStream() = default;
  explicit CUDAStream(cudaStream_t stream) : stream_(stream) {}
  cudaStream_t stream() const { return stream_; }
  operator cudaStream_t() const { return stream(); }
  Device device() const { return Device(DeviceType::CPU); }
  DeviceIndex device_index() const { return 0; }
  StreamId id() const { return 0; }
  bool query() const { return true; }
  void synchronize() const {}
  bool operator==(const CUDAStream& other) const noexcept { return stream_ == other.stream_; }
  bool operator!=(const CUDAStream& other) const noexcept { return stream_ != other.stream_; }

 private:
  cudaStream_t stream_ = nullptr;
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex device = -1) {
  return CUDAStream(emulator::current_stream(device < 0 ? current_device() : device));
}
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool /*high_priority*/ = false, DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(int /*priority*/, DeviceIndex = -1) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}

}  // namespace c10::cuda
EMULATOR_END
