// The driver API, by means of the runtime API: both have the same devices, memory, streams and numbers of
// errors.
#include "emulator/driver_api.h"

#include <algorithm>
#include <cstdio>
#include <vector>

#include "../memory/devices.h"
#include "../report/call.h"
#include "memory/copies.h"

// A context: the device that it makes current.
struct CUctx_st {
  int device;
};

namespace emulator {
namespace {

bool is_initialised = false;
thread_local CUcontext current_context = nullptr;

std::vector<CUcontext>& contexts() {
  static auto& all = *new std::vector<CUcontext>;  // outlives every static object
  return all;
}

CUresult result_of(cudaError_t error) { return CUresult(int(error)); }

// What a function needs that works in the current context.
CUresult check_context() {
  if (!is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
  return current_context ? CUDA_SUCCESS : CUDA_ERROR_INVALID_CONTEXT;
}

CUresult make_current(CUcontext context) {
  if (context && !std::count(contexts().begin(), contexts().end(), context))
    return CUDA_ERROR_INVALID_CONTEXT;
  current_context = context;
  return context ? result_of(cudaSetDevice(context->device)) : CUDA_SUCCESS;
}

CUresult new_context(CUcontext* context, CUdevice device) {
  if (!is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (!context) return CUDA_ERROR_INVALID_VALUE;
  if (check_device(device)) return CUDA_ERROR_INVALID_DEVICE;
  contexts().push_back(new CUctx_st{device});
  return *context = contexts().back(), CUDA_SUCCESS;
}

// Calls a function of the runtime API, if there is a context.
template <typename Function>
CUresult in_context(Function function) {
  if (const CUresult error = check_context()) return error;
  return result_of(function());
}

void* pointer(CUdeviceptr address) { return reinterpret_cast<void*>(address); }
CUdeviceptr address(const void* memory) { return reinterpret_cast<CUdeviceptr>(memory); }

cudaError_t set_elements(CUdeviceptr memory, unsigned int value, std::size_t element, std::size_t count) {
  if (!count) return cudaSuccess;
  Work work;
  Side to;
  if (const cudaError_t error =
          prepare_set(one_row(pointer(memory), element * count), value, element, 0, work, to))
    return error;
  return enqueue(nullptr, std::move(work));
}

}  // namespace
}  // namespace emulator

using namespace emulator;

CUresult cuGetErrorName(CUresult error, const char** name) {
  switch (error) {
#define EMULATOR_DRIVER_NAME(known) \
  case known:                       \
    return *name = #known, CUDA_SUCCESS;
    EMULATOR_DRIVER_ERRORS(EMULATOR_DRIVER_NAME)
  }
  return *name = nullptr, CUDA_ERROR_INVALID_VALUE;
}
CUresult cuGetErrorString(CUresult error, const char** text) {
  const char* name;
  if (cuGetErrorName(error, &name)) return *text = nullptr, CUDA_ERROR_INVALID_VALUE;
  return *text = cudaGetErrorString(cudaError_t(int(error))), CUDA_SUCCESS;
}
CUresult cuInit(unsigned int flags) {
  if (flags) return CUDA_ERROR_INVALID_VALUE;
  return is_initialised = true, CUDA_SUCCESS;
}
CUresult cuDriverGetVersion(int* version) { return result_of(cudaDriverGetVersion(version)); }

CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  if (!is_initialised) return CUDA_ERROR_NOT_INITIALIZED;
  if (check_device(ordinal)) return CUDA_ERROR_INVALID_DEVICE;
  return *device = ordinal, CUDA_SUCCESS;
}
CUresult cuDeviceGetCount(int* count) {
  return is_initialised ? result_of(cudaGetDeviceCount(count)) : CUDA_ERROR_NOT_INITIALIZED;
}
CUresult cuDeviceGetName(char* name, int length, CUdevice device) {
  cudaDeviceProp d;
  if (cudaGetDeviceProperties(&d, device)) return CUDA_ERROR_INVALID_DEVICE;
  return std::snprintf(name, std::size_t(std::max(0, length)), "%s", d.name), CUDA_SUCCESS;
}
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device) {
  cudaDeviceProp d;
  if (cudaGetDeviceProperties(&d, device)) return CUDA_ERROR_INVALID_DEVICE;
  return *uuid = d.uuid, CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device) {
  cudaDeviceProp d;
  if (cudaGetDeviceProperties(&d, device)) return CUDA_ERROR_INVALID_DEVICE;
  return *bytes = d.totalGlobalMem, CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return result_of(cudaDeviceGetAttribute(value, cudaDeviceAttr(int(attribute)), device));
}
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device) {
  if (cudaDeviceGetAttribute(major, cudaDevAttrComputeCapabilityMajor, device))
    return CUDA_ERROR_INVALID_DEVICE;
  return result_of(cudaDeviceGetAttribute(minor, cudaDevAttrComputeCapabilityMinor, device));
}
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return result_of(cudaDeviceCanAccessPeer(can, device, peer));
}

CUresult cuCtxCreate(CUcontext* context, unsigned int, CUdevice device) {
  if (const CUresult error = new_context(context, device)) return error;
  return make_current(*context);
}
CUresult cuCtxCreate(CUcontext* context, CUctxCreateParams_st*, unsigned int flags, CUdevice device) {
  return cuCtxCreate(context, flags, device);
}
CUresult cuCtxDestroy(CUcontext context) {
  if (!std::count(contexts().begin(), contexts().end(), context)) return CUDA_ERROR_INVALID_CONTEXT;
  std::erase(contexts(), context);
  if (current_context == context) current_context = nullptr;
  return CUDA_SUCCESS;
}
CUresult cuCtxGetCurrent(CUcontext* context) { return *context = current_context, CUDA_SUCCESS; }
CUresult cuCtxSetCurrent(CUcontext context) { return make_current(context); }
CUresult cuCtxGetDevice(CUdevice* device) {
  return in_context([&] { return cudaGetDevice(device); });
}
CUresult cuCtxSynchronize(Position where) {
  const Call call("cuCtxSynchronize", where);
  return in_context([&] { return cudaDeviceSynchronize(where); });
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  for (const CUcontext known : contexts())
    if (known->device == device) return *context = known, CUDA_SUCCESS;
  return new_context(context, device);
}
CUresult cuDevicePrimaryCtxRelease(CUdevice device) { return result_of(check_device(device)); }

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total) {
  return in_context([&] { return cudaMemGetInfo(free, total); });
}
CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes, Position where) {
  const Call call("cuMemAlloc", where);
  void* made = nullptr;
  const CUresult result = in_context([&] { return cudaMalloc(&made, bytes, where); });
  return *memory = address(made), result;
}
CUresult cuMemAllocManaged(CUdeviceptr* memory, std::size_t bytes, unsigned int flags, Position where) {
  const Call call("cuMemAllocManaged", where);
  void* made = nullptr;
  const CUresult result = in_context([&] { return cudaMallocManaged(&made, bytes, flags, where); });
  return *memory = address(made), result;
}
CUresult cuMemFree(CUdeviceptr memory, Position where) {
  const Call call("cuMemFree", where);
  return in_context([&] { return cudaFree(pointer(memory), where); });
}
CUresult cuMemAllocHost(void** memory, std::size_t bytes, Position where) {
  const Call call("cuMemAllocHost", where);
  return in_context([&] { return cudaMallocHost(memory, bytes, where); });
}
CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned int flags, Position where) {
  const Call call("cuMemHostAlloc", where);
  return in_context([&] { return cudaHostAlloc(memory, bytes, flags, where); });
}
CUresult cuMemFreeHost(void* memory, Position where) {
  const Call call("cuMemFreeHost", where);
  return in_context([&] { return cudaFreeHost(memory, where); });
}
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, Position where) {
  const Call call("cuMemcpy", where);
  return in_context([&] { return cudaMemcpy(pointer(to), pointer(from), bytes, cudaMemcpyDefault, where); });
}
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes, Position where) {
  const Call call("cuMemcpyHtoD", where);
  return in_context([&] { return cudaMemcpy(pointer(to), from, bytes, cudaMemcpyHostToDevice, where); });
}
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes, Position where) {
  const Call call("cuMemcpyDtoH", where);
  return in_context([&] { return cudaMemcpy(to, pointer(from), bytes, cudaMemcpyDeviceToHost, where); });
}
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, Position where) {
  const Call call("cuMemcpyDtoD", where);
  return in_context(
      [&] { return cudaMemcpy(pointer(to), pointer(from), bytes, cudaMemcpyDeviceToDevice, where); });
}
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream,
                           Position where) {
  const Call call("cuMemcpyHtoDAsync", where);
  return in_context(
      [&] { return cudaMemcpyAsync(pointer(to), from, bytes, cudaMemcpyHostToDevice, stream, where); });
}
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, Position where) {
  const Call call("cuMemcpyDtoHAsync", where);
  return in_context(
      [&] { return cudaMemcpyAsync(to, pointer(from), bytes, cudaMemcpyDeviceToHost, stream, where); });
}
CUresult cuMemsetD8(CUdeviceptr memory, unsigned char value, std::size_t count, Position where) {
  const Call call("cuMemsetD8", where);
  return in_context([&] { return set_elements(memory, value, 1, count); });
}
CUresult cuMemsetD32(CUdeviceptr memory, unsigned int value, std::size_t count, Position where) {
  const Call call("cuMemsetD32", where);
  return in_context([&] { return set_elements(memory, value, 4, count); });
}

CUresult cuStreamCreate(CUstream* stream, unsigned int flags) {
  return in_context([&] { return cudaStreamCreateWithFlags(stream, flags); });
}
CUresult cuStreamDestroy(CUstream stream, Position where) {
  return result_of(cudaStreamDestroy(stream, where));
}
CUresult cuStreamSynchronize(CUstream stream, Position where) {
  const Call call("cuStreamSynchronize", where);
  return in_context([&] { return cudaStreamSynchronize(stream, where); });
}
CUresult cuStreamQuery(CUstream stream, Position where) { return result_of(cudaStreamQuery(stream, where)); }
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags, Position where) {
  return result_of(cudaStreamWaitEvent(stream, event, flags, where));
}
CUresult cuEventCreate(CUevent* event, unsigned int flags) {
  return in_context([&] { return cudaEventCreateWithFlags(event, flags); });
}
CUresult cuEventDestroy(CUevent event, Position where) { return result_of(cudaEventDestroy(event, where)); }
CUresult cuEventRecord(CUevent event, CUstream stream, Position where) {
  return result_of(cudaEventRecord(event, stream, where));
}
CUresult cuEventSynchronize(CUevent event, Position where) {
  return result_of(cudaEventSynchronize(event, where));
}
CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end, Position where) {
  return result_of(cudaEventElapsedTime(milliseconds, begin, end, where));
}
