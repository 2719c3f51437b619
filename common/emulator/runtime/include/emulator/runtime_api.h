// CUDA's runtime API, as in CUDA 13: errors, devices, streams and events here; memory and kernels in headers
// of their own.
//
// In a plain program (`make emulate`), work that CUDA may do later is delayed until something waits for it,
// and the host cannot access device memory. In a stage, everything happens at once, on the calling thread.
// Each function also receives the position of its call. The environment variable EMULATOR_DEVICE changes
// limits of the device by the names of cudaDeviceProp: "maxGridSize.y=63 sharedMemPerBlock=1024".
#pragma once

#include <cstddef>
#include <type_traits>

#include "emulator/api_types.h"
#include "emulator/state.h"

using cudaStreamCallback_t = void (*)(cudaStream_t stream, cudaError_t status, void* data);
#define CUDART_VERSION 13000
#define CUDART_CB

EMULATOR_BEGIN
// Of the calling thread; cleared by the call, unless a kernel broke the device.
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();
const char* cudaGetErrorName(cudaError_t error);
const char* cudaGetErrorString(cudaError_t error);

cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaChooseDevice(int* device, const cudaDeviceProp* wish);
cudaError_t cudaSetValidDevices(int* devices, int count);
cudaError_t cudaInitDevice(int device, unsigned int device_flags, unsigned int flags);
cudaError_t cudaSetDeviceFlags(unsigned int flags);
cudaError_t cudaGetDeviceFlags(unsigned int* flags);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaDeviceGetLimit(std::size_t* value, cudaLimit limit);
cudaError_t cudaDeviceSetLimit(cudaLimit limit, std::size_t value);
cudaError_t cudaDeviceGetCacheConfig(cudaFuncCache* config);
cudaError_t cudaDeviceSetCacheConfig(cudaFuncCache config);
cudaError_t cudaDeviceGetSharedMemConfig(cudaSharedMemConfig* config);
cudaError_t cudaDeviceSetSharedMemConfig(cudaSharedMemConfig config);
cudaError_t cudaDeviceGetPCIBusId(char* text, int length, int device);
cudaError_t cudaDeviceGetByPCIBusId(int* device, const char* text);
cudaError_t cudaCtxResetPersistingL2Cache();
cudaError_t cudaDeviceGetStreamPriorityRange(int* least, int* greatest);
cudaError_t cudaDeviceCanAccessPeer(int* can, int device, int peer);
cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned int flags);
cudaError_t cudaDeviceDisablePeerAccess(int peer);
cudaError_t cudaDeviceGetP2PAttribute(int* value, cudaDeviceP2PAttr attribute, int device, int peer);
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
cudaError_t cudaStreamGetId(cudaStream_t stream, unsigned long long* id, EMULATOR_HERE);
cudaError_t cudaStreamGetDevice(cudaStream_t stream, int* device, EMULATOR_HERE);
cudaError_t cudaStreamGetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   cudaLaunchAttributeValue* value, EMULATOR_HERE);
cudaError_t cudaStreamSetAttribute(cudaStream_t stream, cudaLaunchAttributeID attribute,
                                   const cudaLaunchAttributeValue* value, EMULATOR_HERE);
cudaError_t cudaStreamCopyAttributes(cudaStream_t to, cudaStream_t from, EMULATOR_HERE);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned int flags = 0,
                                EMULATOR_HERE);
cudaError_t cudaStreamAddCallback(cudaStream_t stream, cudaStreamCallback_t callback, void* data,
                                  unsigned int flags, EMULATOR_HERE);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function, void* data, EMULATOR_HERE);

// Between processes nothing is shared: these return cudaErrorNotSupported.
cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t* handle, cudaEvent_t event);
cudaError_t cudaIpcOpenEventHandle(cudaEvent_t* event, cudaIpcEventHandle_t handle);
cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t* handle, void* memory);
cudaError_t cudaIpcOpenMemHandle(void** memory, cudaIpcMemHandle_t handle, unsigned int flags);
cudaError_t cudaIpcCloseMemHandle(void* memory);

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

namespace emulator {

cudaError_t fail(cudaError_t error);  // the last error of the calling thread, from now on; returns it
cudaDeviceProp device();              // as EMULATOR_DEVICE says now
// By cudaFuncSetAttribute, for all instances of the kernel that a launch names. If it names a variable, for
// any.
std::size_t allowed_dynamic_shared(const char* kernel, bool is_variable);
// torch's current stream of a device: the default one; while an extension's kernels are counted another, so
// that a launch that was not given it shows.
cudaStream_t current_stream(int device);
int& device_guards();  // of torch, alive on this OS thread
int tensor_device();   // whose memory an extension's tensors are, as EMULATOR_TENSOR_DEVICE says

}  // namespace emulator
EMULATOR_END
