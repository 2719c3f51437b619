// Stands for torch's header of this name.
#pragma once

#include <c10/core/Device.h>

#include "c10/cuda/CUDAException.h"

EMULATOR_BEGIN
namespace c10::cuda {

inline DeviceIndex device_count() noexcept {
  int count = 0;
  static_cast<void>(cudaGetDeviceCount(&count));
  return DeviceIndex(count);
}
inline DeviceIndex device_count_ensure_non_zero() { return device_count(); }
inline DeviceIndex current_device() {
  int device = 0;
  C10_CUDA_CHECK(cudaGetDevice(&device));
  return DeviceIndex(device);
}
inline void set_device(DeviceIndex device) { C10_CUDA_CHECK(cudaSetDevice(device)); }
inline bool hasPrimaryContext(DeviceIndex) { return true; }
inline void device_synchronize() {}

}  // namespace c10::cuda
EMULATOR_END
