// CUDA's runtime API, as in CUDA 13: errors, one device, memory, copies, streams, events.
//
// In a plain program (`make emulate`), work that CUDA may do later is delayed until something waits for it,
// and the host cannot access device memory. In a stage, everything happens at once, on the calling thread.
// Each function also receives the position of its call. The environment variable EMULATOR_DEVICE changes
// limits of the device by the names of cudaDeviceProp: "maxGridSize.y=63 sharedMemPerBlock=1024".
#pragma once

#include <cstddef>
#include <type_traits>

#include "emulator/device.h"
#include "emulator/error_list.h"
#include "emulator/state.h"
#include "emulator/types.h"

enum cudaError {
#define EMULATOR_ENUMERATOR(name, number, text) name = number,
  EMULATOR_ERRORS(EMULATOR_ENUMERATOR)
#undef EMULATOR_ENUMERATOR
};
using cudaError_t = cudaError;

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
  cudaMemcpyDefault = 4,
};

using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;
using cudaHostFn_t = void (*)(void* data);
using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* data);
#define cudaStreamLegacy (reinterpret_cast<cudaStream_t>(1))
#define cudaStreamPerThread (reinterpret_cast<cudaStream_t>(2))

constexpr unsigned int cudaStreamDefault = 0, cudaStreamNonBlocking = 1;
constexpr unsigned int cudaEventDefault = 0, cudaEventBlockingSync = 1, cudaEventDisableTiming = 2;
constexpr unsigned int cudaEventRecordDefault = 0, cudaEventWaitDefault = 0;
constexpr unsigned int cudaMemAttachGlobal = 1, cudaMemAttachHost = 2, cudaMemAttachSingle = 4;
constexpr unsigned int cudaHostAllocDefault = 0, cudaHostAllocPortable = 1, cudaHostAllocMapped = 2,
                       cudaHostAllocWriteCombined = 4;
constexpr unsigned int cudaHostRegisterDefault = 0, cudaHostRegisterPortable = 1, cudaHostRegisterMapped = 2,
                       cudaHostRegisterReadOnly = 8;
constexpr unsigned int cudaDeviceScheduleAuto = 0, cudaDeviceScheduleSpin = 1, cudaDeviceScheduleYield = 2,
                       cudaDeviceScheduleBlockingSync = 4, cudaDeviceMapHost = 8;
constexpr int cudaCpuDeviceId = -1, cudaInvalidDeviceId = -2;
#define CUDART_VERSION 13000
#define CUDART_CB

EMULATOR_BEGIN
cudaError_t cudaGetLastError();  // of this OS thread; cleared by the call, unless a kernel broke the device
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wish);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);
cudaError_t cudaDeviceSynchronize(EMULATOR_HERE);
cudaError_t cudaDeviceReset(EMULATOR_HERE);

cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned int flags);
cudaError_t cudaStreamCreateWithPriority(cudaStream_t* stream, unsigned int flags, int priority);
cudaError_t cudaStreamDestroy(cudaStream_t stream, EMULATOR_HERE);  // its work is still done
cudaError_t cudaStreamSynchronize(cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaStreamQuery(cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned int* flags, EMULATOR_HERE);
cudaError_t cudaStreamGetPriority(cudaStream_t stream, int* priority, EMULATOR_HERE);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0,
                                EMULATOR_HERE);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int flags, EMULATOR_HERE);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data, EMULATOR_HERE);

cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreate(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned int flags);
cudaError_t cudaEventDestroy(cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream = nullptr, unsigned int flags = 0,
                                     EMULATOR_HERE);
cudaError_t cudaEventQuery(cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaEventSynchronize(cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t begin, cudaEvent_t end, EMULATOR_HERE);

// They return uninitialised memory, which contains the uninitialised pattern.
cudaError_t cudaMalloc(void** memory, std::size_t bytes, EMULATOR_HERE);
cudaError_t cudaMallocAsync(void** memory, std::size_t bytes, cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaMallocPitch(void** memory, std::size_t* pitch, std::size_t width, std::size_t height,
                            EMULATOR_HERE);
cudaError_t cudaMallocManaged(void** memory, std::size_t bytes, unsigned int flags = cudaMemAttachGlobal,
                              EMULATOR_HERE);
cudaError_t cudaMallocHost(void** memory, std::size_t bytes, EMULATOR_HERE);
cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaHostRegister(void* memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaHostUnregister(void* memory, EMULATOR_HERE);
cudaError_t cudaHostGetDevicePointer(void** on_device, void* memory, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaFree(void* memory, EMULATOR_HERE);
cudaError_t cudaFreeAsync(void* memory, cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaFreeHost(void* memory, EMULATOR_HERE);
cudaError_t cudaMemGetInfo(std::size_t* free, std::size_t* total);
cudaError_t cudaPointerGetAttributes(cudaPointerAttributes* attributes, const void* pointer);
cudaError_t cudaMemPrefetchAsync(const void* memory, std::size_t bytes, cudaMemLocation location,
                                 unsigned int flags, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemAdvise(const void* memory, std::size_t bytes, cudaMemoryAdvise advice,
                          cudaMemLocation location, EMULATOR_HERE);

cudaError_t cudaMemcpy(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpyAsync(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemcpy2D(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                         std::size_t width, std::size_t height, cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpy2DAsync(void* to, std::size_t to_pitch, const void* from, std::size_t from_pitch,
                              std::size_t width, std::size_t height, cudaMemcpyKind kind,
                              cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemset(void* memory, int value, std::size_t bytes, EMULATOR_HERE);
cudaError_t cudaMemsetAsync(void* memory, int value, std::size_t bytes, cudaStream_t stream = nullptr,
                            EMULATOR_HERE);
cudaError_t cudaMemset2D(void* memory, std::size_t pitch, int value, std::size_t width, std::size_t height,
                         EMULATOR_HERE);
cudaError_t cudaMemset2DAsync(void* memory, std::size_t pitch, int value, std::size_t width,
                              std::size_t height, cudaStream_t stream = nullptr, EMULATOR_HERE);

namespace emulator {

cudaError_t fail(cudaError_t error);           // the last error of this OS thread, from now on; returns it
cudaDeviceProp device();                       // as EMULATOR_DEVICE says now
void allow_dynamic_shared(std::size_t bytes);  // from now on, for every kernel
std::size_t allowed_dynamic_shared();
int resident_blocks(int threads, std::size_t shared);  // on one multiprocessor at once
void allow_any_cluster_size(const void* function, bool is_allowed);
bool allows_any_cluster_size(const void* function);  // null: whether any kernel does
template <typename Kernel>
const void* address_of_kernel(Kernel* kernel) {
  return reinterpret_cast<const void*>(kernel);
}
// torch's current stream: the default one; while an extension's kernels are counted another, so that a launch
// that was not given it shows.
cudaStream_t current_stream();
int& device_guards();  // of torch, alive on this OS thread

// The rewriter calls the last two after each `__device__` and each `__constant__` variable.
bool new_variable(const volatile void* variable, std::size_t size, const char* name, bool is_constant,
                  Position where);
template <typename T>
bool variable(const T& variable, const char* name, Position where = Position::current()) {
  return new_variable(const_cast<const void*>(static_cast<const volatile void*>(&variable)), sizeof(T), name,
                      false, where);
}
template <typename T>
bool constant(const T& variable, const char* name, Position where = Position::current()) {
  return new_variable(&variable, sizeof(T), name, true, where);
}

cudaError_t copy_to_symbol(const void* symbol, std::size_t size, const void* from, std::size_t bytes,
                           std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                           Position where);
cudaError_t copy_from_symbol(void* to, const void* symbol, std::size_t size, std::size_t bytes,
                             std::size_t offset, cudaMemcpyKind kind, const cudaStream_t* stream,
                             Position where);
cudaError_t address_of_symbol(void** address, const void* symbol, std::size_t size, Position where);

}  // namespace emulator

#define EMULATOR_TYPED(name, parameters, ...)                   \
  template <typename T>                                         \
  cudaError_t name parameters {                                 \
    return name(reinterpret_cast<void**>(memory), __VA_ARGS__); \
  }
EMULATOR_TYPED(cudaMalloc, (T * *memory, std::size_t bytes, EMULATOR_HERE), bytes, where)
EMULATOR_TYPED(cudaMallocAsync, (T * *memory, std::size_t bytes, cudaStream_t stream, EMULATOR_HERE), bytes,
               stream, where)
EMULATOR_TYPED(cudaMallocPitch,
               (T * *memory, std::size_t* pitch, std::size_t width, std::size_t height, EMULATOR_HERE), pitch,
               width, height, where)
EMULATOR_TYPED(cudaMallocManaged,
               (T * *memory, std::size_t bytes, unsigned int flags = cudaMemAttachGlobal, EMULATOR_HERE),
               bytes, flags, where)
EMULATOR_TYPED(cudaHostAlloc, (T * *memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE), bytes,
               flags, where)
EMULATOR_TYPED(cudaHostGetDevicePointer, (T * *memory, void* host, unsigned int flags, EMULATOR_HERE), host,
               flags, where)
// In CUDA 13 only this one has flags.
EMULATOR_TYPED(cudaMallocHost, (T * *memory, std::size_t bytes, unsigned int, EMULATOR_HERE), bytes, where)
EMULATOR_TYPED(cudaMallocHost, (T * *memory, std::size_t bytes, EMULATOR_HERE), bytes, where)
#undef EMULATOR_TYPED

template <typename T>
cudaError_t cudaMemcpyToSymbol(const T& symbol, const void* from, std::size_t bytes, std::size_t offset = 0,
                               cudaMemcpyKind kind = cudaMemcpyHostToDevice, EMULATOR_HERE) {
  return emulator::copy_to_symbol(&symbol, sizeof(T), from, bytes, offset, kind, nullptr, where);
}
template <typename T>
cudaError_t cudaMemcpyToSymbolAsync(const T& symbol, const void* from, std::size_t bytes, std::size_t offset,
                                    cudaMemcpyKind kind, cudaStream_t stream = nullptr, EMULATOR_HERE) {
  return emulator::copy_to_symbol(&symbol, sizeof(T), from, bytes, offset, kind, &stream, where);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbol(void* to, const T& symbol, std::size_t bytes, std::size_t offset = 0,
                                 cudaMemcpyKind kind = cudaMemcpyDeviceToHost, EMULATOR_HERE) {
  return emulator::copy_from_symbol(to, &symbol, sizeof(T), bytes, offset, kind, nullptr, where);
}
template <typename T>
cudaError_t cudaMemcpyFromSymbolAsync(void* to, const T& symbol, std::size_t bytes, std::size_t offset,
                                      cudaMemcpyKind kind, cudaStream_t stream = nullptr, EMULATOR_HERE) {
  return emulator::copy_from_symbol(to, &symbol, sizeof(T), bytes, offset, kind, &stream, where);
}
template <typename T>
cudaError_t cudaGetSymbolAddress(void** address, const T& symbol, EMULATOR_HERE) {
  return emulator::address_of_symbol(address, &symbol, sizeof(T), where);
}
template <typename T>
cudaError_t cudaGetSymbolSize(std::size_t* size, const T&) {
  return *size = sizeof(T), cudaSuccess;
}

// CUDA keeps this for each kernel; here it raises the limit for all of them.
template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed)
    emulator::allow_any_cluster_size(emulator::address_of_kernel(kernel), value != 0);
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || std::size_t(value) > emulator::device().sharedMemPerBlockOptin)
    return emulator::fail(cudaErrorInvalidValue);
  emulator::allow_dynamic_shared(std::size_t(value));
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel) {
  const cudaDeviceProp device = emulator::device();
  *attributes = {};
  attributes->maxThreadsPerBlock = device.maxThreadsPerBlock;
  attributes->maxDynamicSharedSizeBytes = int(device.sharedMemPerBlock);
  attributes->ptxVersion = attributes->binaryVersion = 10 * device.major + device.minor;
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel, int threads,
                                                          std::size_t shared) {
  if (threads <= 0) return emulator::fail(cudaErrorInvalidValue);
  return *blocks = emulator::resident_blocks(threads, shared), cudaSuccess;
}
// Without registers to count, the largest block is as good as any.
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* min_grid, int* threads, Kernel, std::size_t shared = 0,
                                               int limit = 0) {
  const cudaDeviceProp device = emulator::device();
  *threads = limit > 0 && limit < device.maxThreadsPerBlock ? limit : device.maxThreadsPerBlock;
  *min_grid = device.multiProcessorCount * emulator::resident_blocks(*threads, shared);
  return cudaSuccess;
}
EMULATOR_END
