// What nvcc puts in front of each .cu file: CUDA's header, and the macros that tell nvcc from other
// compilers. The rewriter puts EMULATOR_NVCC before their names, because headers outside of the program must
// not see them.
#pragma once

#include "cuda_runtime.h"

#define EMULATOR_NVCC__CUDACC__ 1
#define EMULATOR_NVCC__NVCC__ 1
#define EMULATOR_NVCC__CUDACC_VER_MAJOR__ 13
#define EMULATOR_NVCC__CUDACC_VER_MINOR__ 0
#define EMULATOR_NVCC__CUDACC_VER_BUILD__ 88
#define EMULATOR_NVCC__CUDA_ARCH_LIST__ 900
#define EMULATOR_NVCC__CUDACC_EXTENDED_LAMBDA__ 1
#define EMULATOR_NVCC__CUDACC_RELAXED_CONSTEXPR__ 1
