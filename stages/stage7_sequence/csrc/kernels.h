// The instantiated kernels, for the launches.
#pragma once

#include "recurrence.h"

// For one cell and one type.
struct Kernels {
  const void* forward;   // takes a ForwardWork
  const void* backward;  // takes a BackwardWork
  int scalar_bytes, math_bytes;
  int held;  // fragments of weights that a warp has in registers
};

Kernels kernels_float(CellKind cell);
Kernels kernels_tf32(CellKind cell);
Kernels kernels_half(CellKind cell);
Kernels kernels_bfloat16(CellKind cell);
Kernels kernels_double(CellKind cell);
