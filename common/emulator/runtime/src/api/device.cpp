// The emulated device: its limits, and the functions that query them.
#include <time.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

#include "../report/settings.h"
#include "allocations.h"
#include "call.h"
#include "emulator/synchronise.h"
#include "streams.h"

namespace emulator {
namespace {

std::size_t dynamic_shared_allowed = 0;
std::size_t limits[] = {1024, 1 << 20, 8 << 20};  // by cudaLimit

cudaDeviceProp usual_device() {
  cudaDeviceProp d = {};
  std::snprintf(d.name, sizeof(d.name), "emulated device");
  d.totalGlobalMem = std::size_t(8) << 30;
  d.sharedMemPerBlock = 48 << 10;
  d.sharedMemPerBlockOptin = 99 << 10;
  d.sharedMemPerMultiprocessor = 100 << 10;
  d.reservedSharedMemPerBlock = 1 << 10;
  d.regsPerBlock = d.regsPerMultiprocessor = 65536;
  d.warpSize = 32;
  d.memPitch = 2147483647;
  d.totalConstMem = 64 << 10;
  d.textureAlignment = 512;
  d.maxThreadsPerBlock = 1024;
  d.maxThreadsPerMultiProcessor = 1536;
  d.maxBlocksPerMultiProcessor = 24;
  d.maxThreadsDim[0] = d.maxThreadsDim[1] = 1024;
  d.maxThreadsDim[2] = 64;
  d.maxGridSize[0] = 2147483647;
  d.maxGridSize[1] = d.maxGridSize[2] = 65535;
  d.multiProcessorCount = 2;
  d.major = 8;
  d.minor = 9;
  d.canMapHostMemory = d.concurrentKernels = d.asyncEngineCount = 1;
  d.unifiedAddressing = d.managedMemory = d.concurrentManagedAccess = d.hostRegisterSupported = 1;
  d.memoryBusWidth = 128;
  d.l2CacheSize = 4 << 20;
  d.cooperativeLaunch = d.clusterLaunch = 1;
  d.globalL1CacheSupported = d.localL1CacheSupported = 1;
  d.streamPrioritiesSupported = d.computePreemptionSupported = d.memoryPoolsSupported = 1;
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

cudaError_t only_device(int device) { return device == 0 ? cudaSuccess : fail(cudaErrorInvalidDevice); }

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

void allow_dynamic_shared(std::size_t bytes) {
  dynamic_shared_allowed = std::max(dynamic_shared_allowed, bytes);
}
std::size_t allowed_dynamic_shared() { return dynamic_shared_allowed; }

int resident_blocks(int threads, std::size_t shared) {
  const cudaDeviceProp d = device();
  if (threads > d.maxThreadsPerBlock || shared > d.sharedMemPerBlockOptin) return 0;
  const int whole_warps = (threads + d.warpSize - 1) / d.warpSize * d.warpSize;
  const int by_shared = int(d.sharedMemPerMultiprocessor / (shared + d.reservedSharedMemPerBlock));
  return std::min({d.maxThreadsPerMultiProcessor / whole_warps, d.maxBlocksPerMultiProcessor, by_shared});
}

}  // namespace emulator

using namespace emulator;

long long clock64() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return 1'000'000'000LL * now.tv_sec + now.tv_nsec;
}

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) { return sticky_error() ? sticky_error() : only_device(device); }
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp*) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDeviceFlags(unsigned int) { return cudaSuccess; }
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache) { return cudaSuccess; }

cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (only_device(device)) return cudaErrorInvalidDevice;
  *properties = emulator::device();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (only_device(device)) return cudaErrorInvalidDevice;
  const cudaDeviceProp d = emulator::device();
  const struct {
    cudaDeviceAttr attribute;
    std::size_t value;
  } known[] = {
      {cudaDevAttrMaxThreadsPerBlock, std::size_t(d.maxThreadsPerBlock)},
      {cudaDevAttrMaxBlockDimX, std::size_t(d.maxThreadsDim[0])},
      {cudaDevAttrMaxBlockDimY, std::size_t(d.maxThreadsDim[1])},
      {cudaDevAttrMaxBlockDimZ, std::size_t(d.maxThreadsDim[2])},
      {cudaDevAttrMaxGridDimX, std::size_t(d.maxGridSize[0])},
      {cudaDevAttrMaxGridDimY, std::size_t(d.maxGridSize[1])},
      {cudaDevAttrMaxGridDimZ, std::size_t(d.maxGridSize[2])},
      {cudaDevAttrMaxSharedMemoryPerBlock, d.sharedMemPerBlock},
      {cudaDevAttrTotalConstantMemory, d.totalConstMem},
      {cudaDevAttrWarpSize, std::size_t(d.warpSize)},
      {cudaDevAttrMaxPitch, d.memPitch},
      {cudaDevAttrMaxRegistersPerBlock, std::size_t(d.regsPerBlock)},
      {cudaDevAttrMultiProcessorCount, std::size_t(d.multiProcessorCount)},
      {cudaDevAttrIntegrated, std::size_t(d.integrated)},
      {cudaDevAttrCanMapHostMemory, std::size_t(d.canMapHostMemory)},
      {cudaDevAttrConcurrentKernels, std::size_t(d.concurrentKernels)},
      {cudaDevAttrEccEnabled, std::size_t(d.ECCEnabled)},
      {cudaDevAttrGlobalMemoryBusWidth, std::size_t(d.memoryBusWidth)},
      {cudaDevAttrL2CacheSize, std::size_t(d.l2CacheSize)},
      {cudaDevAttrMaxThreadsPerMultiProcessor, std::size_t(d.maxThreadsPerMultiProcessor)},
      {cudaDevAttrAsyncEngineCount, std::size_t(d.asyncEngineCount)},
      {cudaDevAttrUnifiedAddressing, std::size_t(d.unifiedAddressing)},
      {cudaDevAttrComputeCapabilityMajor, std::size_t(d.major)},
      {cudaDevAttrComputeCapabilityMinor, std::size_t(d.minor)},
      {cudaDevAttrStreamPrioritiesSupported, std::size_t(d.streamPrioritiesSupported)},
      {cudaDevAttrMaxSharedMemoryPerMultiprocessor, d.sharedMemPerMultiprocessor},
      {cudaDevAttrMaxRegistersPerMultiprocessor, std::size_t(d.regsPerMultiprocessor)},
      {cudaDevAttrManagedMemory, std::size_t(d.managedMemory)},
      {cudaDevAttrPageableMemoryAccess, std::size_t(d.pageableMemoryAccess)},
      {cudaDevAttrConcurrentManagedAccess, std::size_t(d.concurrentManagedAccess)},
      {cudaDevAttrCooperativeLaunch, std::size_t(d.cooperativeLaunch)},
      {cudaDevAttrMaxSharedMemoryPerBlockOptin, d.sharedMemPerBlockOptin},
      {cudaDevAttrHostRegisterSupported, std::size_t(d.hostRegisterSupported)},
      {cudaDevAttrMaxBlocksPerMultiprocessor, std::size_t(d.maxBlocksPerMultiProcessor)},
      {cudaDevAttrReservedSharedMemoryPerBlock, d.reservedSharedMemPerBlock},
      {cudaDevAttrMemoryPoolsSupported, std::size_t(d.memoryPoolsSupported)},
      {cudaDevAttrClusterLaunch, std::size_t(d.clusterLaunch)},
  };
  for (const auto& one : known)
    if (one.attribute == attribute) return *value = int(one.value), cudaSuccess;
  return fail(cudaErrorInvalidValue);
}

// Memory that has not been freed is lost, and counts as a leak.
cudaError_t cudaDeviceReset(Position where) {
  const Call call("cudaDeviceReset", where);
  finish_all();
  if (collect_until_exit && !sticky_error()) report_leaks();
  forget_allocations();
  set_sticky_error(cudaSuccess);
  dynamic_shared_allowed = 0;
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  if (limit < cudaLimitStackSize || limit > cudaLimitMallocHeapSize) return fail(cudaErrorUnsupportedLimit);
  return *value = limits[limit], cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  if (limit < cudaLimitStackSize || limit > cudaLimitMallocHeapSize) return fail(cudaErrorUnsupportedLimit);
  return limits[limit] = value, cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int) { return *can = 0, only_device(device); }
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
