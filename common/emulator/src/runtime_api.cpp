// CUDA's runtime API: errors, the device, streams, memory.
#include "emulator/runtime_api.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <iterator>
#include <string>

#include "emulator/state.h"

struct CUstream_st {};

namespace emulator {
namespace {

thread_local cudaError_t last_error = cudaSuccess;
std::size_t dynamic_shared_allowed = 0;

struct ErrorText {
  cudaError_t error;
  const char *name, *text;
};
constexpr ErrorText kErrors[] = {
    {cudaSuccess, "cudaSuccess", "no error"},
    {cudaErrorInvalidValue, "cudaErrorInvalidValue", "invalid argument"},
    {cudaErrorMemoryAllocation, "cudaErrorMemoryAllocation", "out of memory"},
    {cudaErrorInitializationError, "cudaErrorInitializationError", "initialization error"},
    {cudaErrorInvalidConfiguration, "cudaErrorInvalidConfiguration", "invalid configuration argument"},
    {cudaErrorInvalidSymbol, "cudaErrorInvalidSymbol", "invalid device symbol"},
    {cudaErrorInvalidMemcpyDirection, "cudaErrorInvalidMemcpyDirection", "invalid copy direction for memcpy"},
    {cudaErrorInvalidDeviceFunction, "cudaErrorInvalidDeviceFunction", "invalid device function"},
    {cudaErrorNoDevice, "cudaErrorNoDevice", "no CUDA-capable device is detected"},
    {cudaErrorInvalidDevice, "cudaErrorInvalidDevice", "invalid device ordinal"},
    {cudaErrorInvalidResourceHandle, "cudaErrorInvalidResourceHandle", "invalid resource handle"},
    {cudaErrorNotReady, "cudaErrorNotReady", "device not ready"},
    {cudaErrorIllegalAddress, "cudaErrorIllegalAddress", "an illegal memory access was encountered"},
    {cudaErrorLaunchOutOfResources, "cudaErrorLaunchOutOfResources",
     "too many resources requested for launch"},
    {cudaErrorLaunchTimeout, "cudaErrorLaunchTimeout", "the launch timed out and was terminated"},
    {cudaErrorAssert, "cudaErrorAssert", "device-side assert triggered"},
    {cudaErrorMisalignedAddress, "cudaErrorMisalignedAddress", "misaligned address"},
    {cudaErrorLaunchFailure, "cudaErrorLaunchFailure", "unspecified launch failure"},
    {cudaErrorNotSupported, "cudaErrorNotSupported", "operation not supported"},
    {cudaErrorUnknown, "cudaErrorUnknown", "unknown error"},
};

const ErrorText* find(cudaError_t error) {
  const auto* found = std::find_if(std::begin(kErrors), std::end(kErrors),
                                   [&](const ErrorText& known) { return known.error == error; });
  return found == std::end(kErrors) ? nullptr : found;
}

cudaDeviceProp usual_device() {
  cudaDeviceProp d = {};
  std::snprintf(d.name, sizeof(d.name), "emulated device");
  d.totalGlobalMem = std::size_t(8) << 30;
  d.sharedMemPerBlock = 48 << 10;
  d.sharedMemPerBlockOptin = 99 << 10;
  d.sharedMemPerMultiprocessor = 100 << 10;
  d.regsPerBlock = d.regsPerMultiprocessor = 65536;
  d.warpSize = 32;
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
  return d;
}

void set_limit(cudaDeviceProp& d, const std::string& name, long value) {
  if (name == "maxThreadsPerBlock") d.maxThreadsPerBlock = int(value);
  if (name == "maxThreadsPerMultiProcessor") d.maxThreadsPerMultiProcessor = int(value);
  if (name == "maxBlocksPerMultiProcessor") d.maxBlocksPerMultiProcessor = int(value);
  if (name == "multiProcessorCount") d.multiProcessorCount = int(value);
  if (name == "sharedMemPerBlock") d.sharedMemPerBlock = std::size_t(value);
  if (name == "sharedMemPerBlockOptin") d.sharedMemPerBlockOptin = std::size_t(value);
  for (int axis = 0; axis < 3; axis++) {
    if (name == std::string("maxGridSize.") + "xyz"[axis]) d.maxGridSize[axis] = int(value);
    if (name == std::string("maxThreadsDim.") + "xyz"[axis]) d.maxThreadsDim[axis] = int(value);
  }
}

bool is_this(int device) { return device == 0; }

}  // namespace

cudaError_t fail(cudaError_t error) { return last_error = error; }

cudaDeviceProp device() {
  cudaDeviceProp d = usual_device();
  const char* setting = std::getenv("EMULATOR_DEVICE");
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

void tell_observer_of_atomic(void* address, std::size_t size) {
  if (const Thread* thread = current_thread()) observer->atomic(*thread, address, size);
}

}  // namespace emulator

using emulator::fail;

cudaError_t cudaGetLastError() {
  const cudaError_t error = emulator::last_error;
  emulator::last_error = cudaSuccess;
  return error;
}
cudaError_t cudaPeekAtLastError() { return emulator::last_error; }

const char* cudaGetErrorName(cudaError_t error) {
  const auto* known = emulator::find(error);
  return known ? known->name : "unrecognized error code";
}
const char* cudaGetErrorString(cudaError_t error) {
  const auto* known = emulator::find(error);
  return known ? known->text : "unrecognized error code";
}

cudaError_t cudaGetDeviceCount(int* count) { return *count = 1, cudaSuccess; }
cudaError_t cudaGetDevice(int* device) { return *device = 0, cudaSuccess; }
cudaError_t cudaSetDevice(int device) {
  return emulator::is_this(device) ? cudaSuccess : fail(cudaErrorInvalidDevice);
}
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device) {
  if (!emulator::is_this(device)) return fail(cudaErrorInvalidDevice);
  *properties = emulator::device();
  return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device) {
  if (!emulator::is_this(device)) return fail(cudaErrorInvalidDevice);
  const cudaDeviceProp d = emulator::device();
  switch (attribute) {
    case cudaDevAttrMaxThreadsPerBlock:
      return *value = d.maxThreadsPerBlock, cudaSuccess;
    case cudaDevAttrMaxGridDimX:
      return *value = d.maxGridSize[0], cudaSuccess;
    case cudaDevAttrMaxGridDimY:
      return *value = d.maxGridSize[1], cudaSuccess;
    case cudaDevAttrMaxGridDimZ:
      return *value = d.maxGridSize[2], cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlock:
      return *value = int(d.sharedMemPerBlock), cudaSuccess;
    case cudaDevAttrWarpSize:
      return *value = d.warpSize, cudaSuccess;
    case cudaDevAttrMultiProcessorCount:
      return *value = d.multiProcessorCount, cudaSuccess;
    case cudaDevAttrComputeCapabilityMajor:
      return *value = d.major, cudaSuccess;
    case cudaDevAttrComputeCapabilityMinor:
      return *value = d.minor, cudaSuccess;
    case cudaDevAttrMaxSharedMemoryPerBlockOptin:
      return *value = int(d.sharedMemPerBlockOptin), cudaSuccess;
  }
  return fail(cudaErrorInvalidValue);
}
cudaError_t cudaDeviceSynchronize() { return cudaSuccess; }
cudaError_t cudaDeviceReset() { return emulator::dynamic_shared_allowed = 0, cudaSuccess; }

cudaError_t cudaStreamCreate(cudaStream_t* stream) { return *stream = new CUstream_st, cudaSuccess; }
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int) { return cudaStreamCreate(stream); }
cudaError_t cudaStreamDestroy(cudaStream_t stream) { return delete stream, cudaSuccess; }
cudaError_t cudaStreamSynchronize(cudaStream_t) { return cudaSuccess; }
cudaError_t cudaStreamQuery(cudaStream_t) { return cudaSuccess; }

cudaError_t cudaMalloc(void** memory, std::size_t bytes) {
  *memory = nullptr;
  if (bytes == 0) return cudaSuccess;
  if (bytes > emulator::device().totalGlobalMem) return fail(cudaErrorMemoryAllocation);
  const std::size_t rounded = (bytes + 255) / 256 * 256;
  *memory = std::aligned_alloc(256, rounded);
  if (!*memory) return fail(cudaErrorMemoryAllocation);
  std::fill_n(static_cast<std::uint32_t*>(*memory), rounded / 4, emulator::kUnwritten);
  return cudaSuccess;
}
cudaError_t cudaFree(void* memory) { return std::free(memory), cudaSuccess; }
cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind) {
  if (kind < cudaMemcpyHostToHost || kind > cudaMemcpyDefault) return fail(cudaErrorInvalidMemcpyDirection);
  if (bytes) std::memmove(to, from, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t) {
  return cudaMemcpy(to, from, bytes, kind);
}
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes) {
  if (bytes) std::memset(memory, value, bytes);
  return cudaSuccess;
}
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t) {
  return cudaMemset(memory, value, bytes);
}
