// Stands for torch's header of this name. There is one device, number 0.
#pragma once

#include <c10/core/Device.h>

#include "c10/cuda/CUDAException.h"

EMULATOR_BEGIN
namespace c10::cuda {

inline DeviceIndex device_count() noexcept { return 1; }
inline DeviceIndex device_count_ensure_non_zero() { return 1; }
inline DeviceIndex current_device() { return 0; }
inline void set_device(DeviceIndex device) { C10_CUDA_CHECK(cudaSetDevice(device)); }
inline void device_synchronize() {}

}  // namespace c10::cuda
EMULATOR_END
