// The loops of lltm_rows.h for CPUs with AVX2: torch's Vectorized<float> is a register of 8 floats here, not an
// array. A wheel may run on a CPU without AVX2, so lltm_cpu.cpp chooses at run time, and nothing else may have these
// instructions. Headers that other files include come first: their functions must stay as they are for any CPU.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>

#define CPU_CAPABILITY AVX2
#ifdef __x86_64__
#define CPU_CAPABILITY_AVX2
#pragma GCC target("avx2,fma,f16c")
#ifndef __AVX__  // the pragma defines it from g++ 14 on; Sleef, torch's library of exp and expm1, needs it
#define __AVX__ 1
#endif
#endif

#include "lltm_rows.h"
