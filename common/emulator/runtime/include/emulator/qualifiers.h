// CUDA's qualifiers of functions and variables. `__shared__`
// is not here: the rewriter replaces each such declaration.
#pragma once

#define __host__
#define __device__
// All that a kernel calls is inlined into it, as nvcc does. g++ does not instrument the copies that it makes
// for a call, of a structure that is an argument or a result.
#define __global__ __attribute__((flatten, noinline))
#define __constant__
#define __managed__
#define __grid_constant__
#define __launch_bounds__(...)  // the rewriter begins such kernels with a call of declare_launch_bounds
#define __cluster_dims__(...)   // the rewriter begins such kernels with a call of declare_cluster
#define __align__(n) __attribute__((aligned(n)))
#define __builtin_align__(n) __align__(n)
#define __forceinline__ inline __attribute__((always_inline))
#define __inline_hint__
// The standard library writes `__attribute__((__noinline__))`, which an empty word leaves valid.
#define __noinline__

// What is declared between these two belongs to one extension: several emulated ones, and the real CUDA
// libraries, live side by side in a process. Types that a kernel's own structures may hold stay outside.
#define EMULATOR_BEGIN _Pragma("GCC visibility push(hidden)")
#define EMULATOR_END _Pragma("GCC visibility pop")

// State that each core of the host has of its own while it runs blocks. A program runs blocks on all cores.
// An extension runs them on one: it is loaded late, and there is little room for such state.
#ifdef EMULATOR_ALL_CORES
#define EMULATOR_OF_CORE __attribute__((tls_model("initial-exec"))) __thread
#else
#define EMULATOR_OF_CORE
#endif
