// The instantiated kernels, for the launches.
#pragma once

#include "plan.h"

struct KernelPair {
  const void* forward;   // takes a ForwardWork
  const void* backward;  // takes a BackwardWork
};

// For one cell and one type. Pair i is for Partition::held_tiles = 1 << i.
struct Kernels {
  KernelPair pairs[3];
  int gates, scalar_bytes, math_bytes;
  int held;  // fragments of weights that a warp has in registers
};

// Each cell and type has a source of its own in instances/, so that they are compiled in parallel.
template <typename Cell, Scalar kScalar>
Kernels kernels_of();
