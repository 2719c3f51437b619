// The emulated device: its limits, and the functions that query them.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../report/settings.h"
#include "call.h"
#include "devices.h"
#include "emulator/synchronise.h"
#include "kernels.h"
#include "memory/allocations.h"
#include "streams/streams.h"

namespace emulator {
namespace {

std::size_t limits[] = {1024, 1 << 20, 8 << 20, 2, 2048, 64, 0};  // by cudaLimit

struct {
  unsigned int flags = cudaDeviceMapHost;
  cudaFuncCache cache = cudaFuncCachePreferNone;
} configuration;

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

using namespace emulator;

long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1'000'000'000LL * now.tv_sec + now.tv_nsec;
}

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  if (flags & ~unsigned(cudaDeviceMask)) return fail(cudaErrorInvalidValue);
  return configuration.flags = flags | cudaDeviceMapHost, cudaSuccess;
}
cudaError_t cudaGetDeviceFlags(unsigned int* flags) { return *flags = configuration.flags, cudaSuccess; }
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config) {
  return *config = configuration.cache, cudaSuccess;
}
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config) {
  return configuration.cache = config, cudaSuccess;
}
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config) {
  return *config = cudaSharedMemBankSizeFourByte, cudaSuccess;
}
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig) {
  return cudaSuccess;
}  // has no effect on a GPU, either
cudaError_t cudaCtxResetPersistingL2Cache() { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (check_device(device)) return cudaErrorInvalidDevice;
  *properties = emulator::device();
  properties->pciBusID += device;
  properties->isMultiGpuBoard = device_count() > 1;
  return cudaSuccess;
}

// Memory that has not been freed is lost, and counts as a leak.
cudaError_t cudaDeviceReset(Position where) {
  const Call call("cudaDeviceReset", where);
  finish_all();
  if (collect_until_exit && !sticky_error()) report_leaks(current_device());
  forget_allocations(current_device());
  set_sticky_error(cudaSuccess);
  forget_function_attributes();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  if (limit < cudaLimitStackSize || limit > cudaLimitPersistingL2CacheSize)
    return fail(cudaErrorUnsupportedLimit);
  return *value = limits[limit], cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  if (limit < cudaLimitStackSize || limit > cudaLimitPersistingL2CacheSize)
    return fail(cudaErrorUnsupportedLimit);
  return limits[limit] = value, cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
