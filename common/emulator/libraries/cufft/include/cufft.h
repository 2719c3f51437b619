// Stands for cuFFT's header of this name: Fourier transforms in one to three dimensions, in batches.
//
// Results are not divided by the number of elements. All is computed in double and rounded once.
#pragma once

#include <cstddef>

#include "cuComplex.h"
#include "cuda_runtime.h"
#include "library_types.h"

#define CUFFT_VER_MAJOR 12
#define CUFFT_VER_MINOR 0
#define CUFFT_VER_PATCH 0
#define CUFFT_VERSION (CUFFT_VER_MAJOR * 1000 + CUFFT_VER_MINOR * 100 + CUFFT_VER_PATCH)
#define CUFFTAPI
#define _CUFFT_H_  // programs ask for it
#define CUFFT_FORWARD -1
#define CUFFT_INVERSE 1

enum cufftResult {
  CUFFT_SUCCESS = 0x0,
  CUFFT_INVALID_PLAN = 0x1,
  CUFFT_ALLOC_FAILED = 0x2,
  CUFFT_INVALID_TYPE = 0x3,
  CUFFT_INVALID_VALUE = 0x4,
  CUFFT_INTERNAL_ERROR = 0x5,
  CUFFT_EXEC_FAILED = 0x6,
  CUFFT_SETUP_FAILED = 0x7,
  CUFFT_INVALID_SIZE = 0x8,
  CUFFT_UNALIGNED_DATA = 0x9,
  CUFFT_INVALID_DEVICE = 0xb,
  CUFFT_NO_WORKSPACE = 0xd,
  CUFFT_NOT_IMPLEMENTED = 0xe,
  CUFFT_NOT_SUPPORTED = 0x10,
  CUFFT_MISSING_DEPENDENCY = 0x11,
  CUFFT_NVRTC_FAILURE = 0x12,
  CUFFT_NVJITLINK_FAILURE = 0x13,
  CUFFT_NVSHMEM_FAILURE = 0x14
};
using cufftResult_t = cufftResult;
enum cufftType {
  CUFFT_C2C = 0x29,
  CUFFT_R2C = 0x2a,
  CUFFT_C2R = 0x2c,
  CUFFT_Z2Z = 0x69,
  CUFFT_D2Z = 0x6a,
  CUFFT_Z2D = 0x6c
};
using cufftType_t = cufftType;
using cufftReal = float;
using cufftDoubleReal = double;
using cufftComplex = cuComplex;
using cufftDoubleComplex = cuDoubleComplex;
using cufftHandle = int;

EMULATOR_BEGIN
// The sizes come with the slowest dimension first. Real data have nz / 2 + 1 complex numbers in the last one;
// if input and output are the same memory, each line of real numbers is padded to that length.
cufftResult cufftPlan1d(cufftHandle* plan, int nx, cufftType type, int batch);
cufftResult cufftPlan2d(cufftHandle* plan, int nx, int ny, cufftType type);
cufftResult cufftPlan3d(cufftHandle* plan, int nx, int ny, int nz, cufftType type);
// Element [x,y,z] of transform b is number b * distance + ((x * embed[1] + y) * embed[2] + z) * stride of the
// memory; without `embed`, the elements are contiguous.
cufftResult cufftPlanMany(cufftHandle* plan, int rank, int* sizes, int* in_embed, int in_stride,
                          int in_distance, int* out_embed, int out_stride, int out_distance, cufftType type,
                          int batch);
cufftResult cufftCreate(cufftHandle* plan);
cufftResult cufftMakePlan1d(cufftHandle plan, int nx, cufftType type, int batch, std::size_t* work_bytes);
cufftResult cufftMakePlan2d(cufftHandle plan, int nx, int ny, cufftType type, std::size_t* work_bytes);
cufftResult cufftMakePlan3d(cufftHandle plan, int nx, int ny, int nz, cufftType type,
                            std::size_t* work_bytes);
cufftResult cufftMakePlanMany(cufftHandle plan, int rank, int* sizes, int* in_embed, int in_stride,
                              int in_distance, int* out_embed, int out_stride, int out_distance,
                              cufftType type, int batch, std::size_t* work_bytes);
cufftResult cufftDestroy(cufftHandle plan, EMULATOR_HERE);  // waits for the device
cufftResult cufftSetStream(cufftHandle plan, cudaStream_t stream);
cufftResult cufftSetAutoAllocation(cufftHandle plan,
                                   int is_automatic);  // without effect: no memory is needed
cufftResult cufftSetWorkArea(cufftHandle plan, void* memory);
cufftResult cufftGetSize(cufftHandle plan, std::size_t* work_bytes);
cufftResult cufftEstimate1d(int nx, cufftType type, int batch, std::size_t* work_bytes);
cufftResult cufftGetVersion(int* version);
cufftResult cufftGetProperty(libraryPropertyType property, int* value);

cufftResult cufftExecC2C(cufftHandle plan, cufftComplex* in, cufftComplex* out, int direction, EMULATOR_HERE);
cufftResult cufftExecR2C(cufftHandle plan, cufftReal* in, cufftComplex* out, EMULATOR_HERE);
cufftResult cufftExecC2R(cufftHandle plan, cufftComplex* in, cufftReal* out, EMULATOR_HERE);
cufftResult cufftExecZ2Z(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleComplex* out, int direction,
                         EMULATOR_HERE);
cufftResult cufftExecD2Z(cufftHandle plan, cufftDoubleReal* in, cufftDoubleComplex* out, EMULATOR_HERE);
cufftResult cufftExecZ2D(cufftHandle plan, cufftDoubleComplex* in, cufftDoubleReal* out, EMULATOR_HERE);
EMULATOR_END
