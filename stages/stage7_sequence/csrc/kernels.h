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

Kernels kernels_float(CellKind cell);
Kernels kernels_tf32(CellKind cell);
Kernels kernels_half(CellKind cell);
Kernels kernels_bfloat16(CellKind cell);
Kernels kernels_double(CellKind cell);
