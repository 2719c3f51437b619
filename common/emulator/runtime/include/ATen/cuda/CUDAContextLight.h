// Stands for torch's header of this name.
#pragma once

#include "c10/cuda/CUDAFunctions.h"

EMULATOR_BEGIN
namespace at::cuda {

inline bool is_available() { return true; }
inline int warp_size() { return 32; }

inline cudaDeviceProp* getDeviceProperties(c10::DeviceIndex) {
  static cudaDeviceProp properties;
  properties = emulator::device();
  return &properties;
}
inline cudaDeviceProp* getCurrentDeviceProperties() { return getDeviceProperties(0); }

}  // namespace at::cuda
EMULATOR_END
