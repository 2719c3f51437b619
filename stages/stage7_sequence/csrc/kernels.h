// The instantiated kernels, for the launches.
#pragma once

#include "recurrence.h"

struct KernelPair {
  const void* forward;   // takes a ForwardWork
  const void* backward;  // takes a BackwardWork
};

// For one cell and one type. Pair i is for Division::held_tiles = 1 << i.
struct Kernels {
  KernelPair pairs[3];
  int scalar_bytes, math_bytes;
  int held;  // fragments of weights that a warp has in registers
};

struct Lltm;
struct Lstm;
struct Gru;

// Each cell and type has a source of its own in instances/, so that they are compiled in parallel.
template <typename Cell, Scalar kScalar>
Kernels kernels_of();
