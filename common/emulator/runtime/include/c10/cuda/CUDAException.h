// Stands for torch's header of this name: checks that turn CUDA's errors into exceptions.
#pragma once

#include <c10/util/Exception.h>

#include "cuda_runtime.h"

#define C10_CUDA_CHECK(EXPRESSION)                                                                  \
  do {                                                                                              \
    const cudaError_t emulator_error = EXPRESSION;                                                  \
    if (emulator_error != cudaSuccess) static_cast<void>(cudaGetLastError());                       \
    TORCH_CHECK(emulator_error == cudaSuccess, "CUDA error: ", cudaGetErrorString(emulator_error)); \
  } while (0)

#define C10_CUDA_CHECK_WARN(EXPRESSION)                                 \
  do {                                                                  \
    const cudaError_t emulator_error = EXPRESSION;                      \
    if (emulator_error != cudaSuccess) {                                \
      static_cast<void>(cudaGetLastError());                            \
      TORCH_WARN("CUDA warning: ", cudaGetErrorString(emulator_error)); \
    }                                                                   \
  } while (0)

#define C10_CUDA_ERROR_HANDLED(EXPRESSION) EXPRESSION
#define C10_CUDA_IGNORE_ERROR(EXPRESSION)                                   \
  do {                                                                      \
    if ((EXPRESSION) != cudaSuccess) static_cast<void>(cudaGetLastError()); \
  } while (0)
#define C10_CUDA_CLEAR_ERROR() static_cast<void>(cudaGetLastError())
#define C10_CUDA_KERNEL_LAUNCH_CHECK() C10_CUDA_CHECK(cudaGetLastError())
