// The part of CUDA's driver API that loads no kernels: devices, contexts, memory, streams, events, errors.
//
// Its functions do what those of the runtime API do. A context is a device that is current.
#pragma once

#include "emulator/driver_types.h"
#include "emulator/runtime_api.h"

#define CUDA_VERSION 13000
#define CU_MEMHOSTALLOC_PORTABLE 1
#define CU_MEMHOSTALLOC_DEVICEMAP 2
#define CU_MEMHOSTALLOC_WRITECOMBINED 4
// Programs ask for it to know whether CUDA's header of the driver is included.
#define __cuda_cuda_h__

using CUdevice = int;
using CUdeviceptr = unsigned long long;
using CUcontext = struct CUctx_st*;
using CUmodule = struct CUmod_st*;
using CUfunction = cudaFunction_t;
using CUstream = cudaStream_t;
using CUevent = cudaEvent_t;

EMULATOR_BEGIN
CUresult cuGetErrorName(CUresult error, const char** name);
CUresult cuGetErrorString(CUresult error, const char** text);
CUresult cuInit(unsigned int flags);
CUresult cuDriverGetVersion(int* version);

CUresult cuDeviceGet(CUdevice* device, int ordinal);
CUresult cuDeviceGetCount(int* count);
CUresult cuDeviceGetName(char* name, int length, CUdevice device);
CUresult cuDeviceGetUuid(CUuuid* uuid, CUdevice device);
CUresult cuDeviceTotalMem(std::size_t* bytes, CUdevice device);
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device);
CUresult cuDeviceComputeCapability(int* major, int* minor, CUdevice device);
CUresult cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer);

CUresult cuCtxCreate(CUcontext* context, unsigned int flags, CUdevice device);  // until CUDA 12
CUresult cuCtxCreate(CUcontext* context, struct CUctxCreateParams_st* parameters, unsigned int flags,
                     CUdevice device);
CUresult cuCtxDestroy(CUcontext context);
CUresult cuCtxGetCurrent(CUcontext* context);
CUresult cuCtxSetCurrent(CUcontext context);
CUresult cuCtxGetDevice(CUdevice* device);
CUresult cuCtxSynchronize(EMULATOR_HERE);
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device);
CUresult cuDevicePrimaryCtxRelease(CUdevice device);

CUresult cuMemGetInfo(std::size_t* free, std::size_t* total);
CUresult cuMemAlloc(CUdeviceptr* memory, std::size_t bytes, EMULATOR_HERE);
CUresult cuMemAllocManaged(CUdeviceptr* memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE);
CUresult cuMemFree(CUdeviceptr memory, EMULATOR_HERE);
CUresult cuMemAllocHost(void** memory, std::size_t bytes, EMULATOR_HERE);
CUresult cuMemHostAlloc(void** memory, std::size_t bytes, unsigned int flags, EMULATOR_HERE);
CUresult cuMemFreeHost(void* memory, EMULATOR_HERE);
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, EMULATOR_HERE);
CUresult cuMemcpyHtoD(CUdeviceptr to, const void* from, std::size_t bytes, EMULATOR_HERE);
CUresult cuMemcpyDtoH(void* to, CUdeviceptr from, std::size_t bytes, EMULATOR_HERE);
CUresult cuMemcpyDtoD(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, EMULATOR_HERE);
CUresult cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream,
                           EMULATOR_HERE);
CUresult cuMemcpyDtoHAsync(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream, EMULATOR_HERE);
CUresult cuMemsetD8(CUdeviceptr memory, unsigned char value, std::size_t count, EMULATOR_HERE);
CUresult cuMemsetD32(CUdeviceptr memory, unsigned int value, std::size_t count, EMULATOR_HERE);

CUresult cuStreamCreate(CUstream* stream, unsigned int flags);
CUresult cuStreamDestroy(CUstream stream, EMULATOR_HERE);
CUresult cuStreamSynchronize(CUstream stream, EMULATOR_HERE);
CUresult cuStreamQuery(CUstream stream, EMULATOR_HERE);
CUresult cuStreamWaitEvent(CUstream stream, CUevent event, unsigned int flags, EMULATOR_HERE);
CUresult cuEventCreate(CUevent* event, unsigned int flags);
CUresult cuEventDestroy(CUevent event, EMULATOR_HERE);
CUresult cuEventRecord(CUevent event, CUstream stream, EMULATOR_HERE);
CUresult cuEventSynchronize(CUevent event, EMULATOR_HERE);
CUresult cuEventElapsedTime(float* milliseconds, CUevent begin, CUevent end, EMULATOR_HERE);
EMULATOR_END
