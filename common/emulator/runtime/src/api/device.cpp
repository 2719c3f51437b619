// CUDA's functions for one device: its properties, its settings and its reset.
#include <strings.h>

#include <cstdio>

#include "../device/heap.h"
#include "../memory/devices.h"
#include "../report/call.h"
#include "kernels.h"
#include "memory/allocations.h"
#include "streams/streams.h"

namespace emulator {
namespace {

std::size_t limits[] = {1024, 1 << 20, kHeapSize, 0, 2048, 64, 0};  // by cudaLimit

// From compute capability 9.0 on, there is no depth to which a kernel can wait for those that it launches.
bool is_supported(cudaLimit limit) {
  return limit >= cudaLimitStackSize && limit <= cudaLimitPersistingL2CacheSize &&
         limit != cudaLimitDevRuntimeSyncDepth;
}

struct {
  unsigned int flags = cudaDeviceMapHost;
  cudaFuncCache cache = cudaFuncCachePreferNone;
} configuration;

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaSetDeviceFlags(unsigned int flags) {
  if (flags & ~unsigned(cudaDeviceMask)) return fail(cudaErrorInvalidValue);
  return configuration.flags = flags | cudaDeviceMapHost, cudaSuccess;
}
cudaError_t cudaInitDevice(int device, unsigned int flags, unsigned int has_flags) {
  if (check_device(device)) return cudaErrorInvalidDevice;
  return has_flags & cudaInitDeviceFlagsAreValid ? cudaSetDeviceFlags(flags) : cudaSuccess;
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

cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device) {
  cudaDeviceProp d;
  if (cudaGetDeviceProperties(&d, device)) return cudaErrorInvalidDevice;
  const int needed = std::snprintf(text, length < 0 ? 0 : std::size_t(length), "%04x:%02x:%02x.0",
                                   d.pciDomainID, d.pciBusID, d.pciDeviceID);
  return needed < length ? cudaSuccess : fail(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text) {
  for (int i = 0; text && i < device_count(); i++) {
    char known[32];
    cudaDeviceGetPCIBusId(known, sizeof(known), i);
    if (strcasecmp(text, known) == 0) return *device = i, cudaSuccess;
  }
  return fail(cudaErrorInvalidDevice);
}

// Memory that has not been freed is lost, and counts as a leak.
cudaError_t cudaDeviceReset(Position where) {
  const Call call("cudaDeviceReset", where);
  finish_all();
  if (collect_until_exit && !sticky_error()) report_leaks(current_device());
  forget_allocations(current_device());
  clear_heap();
  set_sticky_error(cudaSuccess);
  forget_function_attributes();
  return cudaSuccess;
}

cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit) {
  if (!is_supported(limit)) return fail(cudaErrorUnsupportedLimit);
  return *value = limits[limit], cudaSuccess;
}
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value) {
  if (!is_supported(limit)) return fail(cudaErrorUnsupportedLimit);
  if (limit == cudaLimitMallocHeapSize) set_heap_size(value);
  return limits[limit] = value, cudaSuccess;
}
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest) {
  if (least) *least = 0;
  if (greatest) *greatest = -5;
  return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
cudaError_t cudaRuntimeGetVersion(int* version) { return *version = CUDART_VERSION, cudaSuccess; }
