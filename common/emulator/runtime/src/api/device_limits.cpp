// The limits of the emulated device: those of a small GPU of compute capability 9.0, and what EMULATOR_DEVICE
// changes.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../state/settings.h"
#include "emulator/runtime_api.h"

namespace emulator {
namespace {

cudaDeviceProp usual_device() {
  cudaDeviceProp d = {};
  std::snprintf(d.name, sizeof(d.name), "emulated device");
  d.totalGlobalMem = std::size_t(8) << 30;
  d.sharedMemPerBlock = 48 << 10;
  d.sharedMemPerBlockOptin = 227 << 10;
  d.sharedMemPerMultiprocessor = 228 << 10;
  d.reservedSharedMemPerBlock = 1 << 10;
  d.regsPerBlock = d.regsPerMultiprocessor = 65536;
  d.warpSize = 32;
  d.memPitch = 2147483647;
  d.totalConstMem = 64 << 10;
  d.textureAlignment = d.surfaceAlignment = 512;
  d.texturePitchAlignment = 32;
  d.maxTexture1D = d.maxTexture2D[0] = d.maxTexture2DLinear[0] = 131072;
  d.maxTexture2D[1] = d.maxTexture2DLinear[1] = 65000;
  d.maxTexture2DLinear[2] = 2097120;
  d.maxTexture3D[0] = d.maxTexture3D[1] = d.maxTexture3D[2] = 16384;
  d.maxTexture1DLayered[0] = d.maxTexture2DLayered[0] = d.maxTexture2DLayered[1] = 32768;
  d.maxTexture1DLayered[1] = d.maxTexture2DLayered[2] = 2048;
  d.maxSurface1D = d.maxSurface2D[0] = d.maxSurface1DLayered[0] = 32768;
  d.maxSurface2D[1] = 65536;
  d.maxSurface3D[0] = d.maxSurface3D[1] = d.maxSurface3D[2] = 16384;
  d.maxSurface2DLayered[0] = d.maxSurface2DLayered[1] = 32768;
  d.maxSurface1DLayered[1] = d.maxSurface2DLayered[2] = 2048;
  d.maxThreadsPerBlock = 1024;
  d.maxThreadsPerMultiProcessor = 2048;
  d.maxBlocksPerMultiProcessor = 32;
  d.maxThreadsDim[0] = d.maxThreadsDim[1] = 1024;
  d.maxThreadsDim[2] = 64;
  d.maxGridSize[0] = 2147483647;
  d.maxGridSize[1] = d.maxGridSize[2] = 65535;
  d.multiProcessorCount = 2;
  d.major = 9;
  d.minor = 0;
  d.canMapHostMemory = d.concurrentKernels = d.ECCEnabled = 1;
  d.asyncEngineCount = 3;
  d.unifiedAddressing = d.managedMemory = d.concurrentManagedAccess = d.hostRegisterSupported = 1;
  d.canUseHostPointerForRegisteredMem = 1;
  d.memoryBusWidth = 5120;
  d.l2CacheSize = 50 << 20;
  d.cooperativeLaunch = d.clusterLaunch = 1;
  d.globalL1CacheSupported = d.localL1CacheSupported = 1;
  d.streamPrioritiesSupported = d.computePreemptionSupported = d.memoryPoolsSupported = 1;
  d.pciBusID = 1;
  std::memcpy(d.uuid.bytes, "emulated device", sizeof(d.uuid.bytes));
  return d;
}

void set_limit(cudaDeviceProp& d, const std::string& name, long value) {
  if (name == "maxThreadsPerBlock") d.maxThreadsPerBlock = int(value);
  if (name == "maxThreadsPerMultiProcessor") d.maxThreadsPerMultiProcessor = int(value);
  if (name == "maxBlocksPerMultiProcessor") d.maxBlocksPerMultiProcessor = int(value);
  if (name == "multiProcessorCount") d.multiProcessorCount = int(value);
  if (name == "sharedMemPerBlock") d.sharedMemPerBlock = std::size_t(value);
  if (name == "sharedMemPerBlockOptin") d.sharedMemPerBlockOptin = std::size_t(value);
  if (name == "sharedMemPerMultiprocessor") d.sharedMemPerMultiprocessor = std::size_t(value);
  if (name == "clusterLaunch") d.clusterLaunch = int(value);
  if (name == "totalGlobalMem") d.totalGlobalMem = std::size_t(value);
  for (int axis = 0; axis < 3; axis++) {
    if (name == std::string("maxGridSize.") + "xyz"[axis]) d.maxGridSize[axis] = int(value);
    if (name == std::string("maxThreadsDim.") + "xyz"[axis]) d.maxThreadsDim[axis] = int(value);
  }
}

}  // namespace

cudaDeviceProp device() {
  cudaDeviceProp d = usual_device();
  const char* setting = setting_of("EMULATOR_DEVICE");
  for (std::string rest = setting ? setting : ""; !rest.empty();) {
    const std::string word = rest.substr(0, rest.find(' '));
    rest.erase(0, std::min(rest.size(), word.size() + 1));
    if (const auto equals = word.find('='); equals != std::string::npos)
      set_limit(d, word.substr(0, equals), std::atol(word.c_str() + equals + 1));
  }
  return d;
}

}  // namespace emulator
