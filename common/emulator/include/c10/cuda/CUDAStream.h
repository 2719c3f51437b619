// Stands for torch's header of this name. There is one stream, and a launch has ended when it returns.
#pragma once

#include <c10/core/Device.h>
#include <c10/core/Stream.h>

#include "c10/cuda/CUDAException.h"

EMULATOR_BEGIN
namespace c10::cuda {

class CUDAStream {
 public:
  cudaStream_t stream() const { return nullptr; }
  operator cudaStream_t() const { return stream(); }
  Device device() const { return Device(DeviceType::CPU); }
  DeviceIndex device_index() const { return 0; }
  StreamId id() const { return 0; }
  bool query() const { return true; }
  void synchronize() const {}
  bool operator==(const CUDAStream&) const noexcept { return true; }
  bool operator!=(const CUDAStream&) const noexcept { return false; }
};

inline CUDAStream getCurrentCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getDefaultCUDAStream(DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(bool /*high_priority*/ = false, DeviceIndex = -1) { return {}; }
inline CUDAStream getStreamFromPool(int /*priority*/, DeviceIndex = -1) { return {}; }
inline void setCurrentCUDAStream(CUDAStream) {}

}  // namespace c10::cuda
EMULATOR_END
