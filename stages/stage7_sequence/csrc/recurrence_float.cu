#include "instantiate.cuh"

Kernels kernels_float(CellKind cell) { return kernels_of_type<FmaUnits<float>>(cell); }
