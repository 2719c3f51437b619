// The loops of lltm_rows.h for CPUs with AVX-512, whose registers have 16 floats. As lltm_avx2.cpp.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/Parallel.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>

#define CPU_CAPABILITY AVX512
#ifdef __x86_64__
#define CPU_CAPABILITY_AVX512
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,fma,f16c")
#ifndef __AVX512F__
#define __AVX512F__ 1
#endif
#endif

#include "lltm_rows.h"
