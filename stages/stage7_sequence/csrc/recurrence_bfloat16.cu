#include "instantiate.cuh"

Kernels kernels_bfloat16(CellKind cell) { return kernels_of_type<TensorCores<__nv_bfloat16>>(cell); }
