// check.py compiles this file with the learner's lltm_math.h, and with __host__ or __device__ in place of
// MARK. The mark is defined as an alignment, so the address of a function shows whether the function has the
// mark. A conversion from float to double is an error.
#include <cuda_runtime.h>

#include <cmath>
#include <cstdint>
#include <cstdio>

#undef MARK
#define MARK __attribute__((aligned(4096)))
#pragma GCC diagnostic error "-Wdouble-promotion"
#pragma GCC diagnostic error "-Wfloat-conversion"
#include "csrc/lltm_math.h"

template <typename scalar_t>
bool is_aligned(scalar_t (*function)(scalar_t)) {
  return reinterpret_cast<std::uintptr_t>(function) % 4096 == 0;
}

template <typename scalar_t>
bool is_aligned(scalar_t (*function)(const scalar_t&)) {
  return reinterpret_cast<std::uintptr_t>(function) % 4096 == 0;
}

#define SHOW(function) \
  std::printf(#function " %d\n", is_aligned<float>(function) && is_aligned<double>(function))

int main() {
  SHOW(sigmoid);
  SHOW(d_sigmoid);
  SHOW(d_tanh);
  SHOW(elu);
  SHOW(d_elu);
}
