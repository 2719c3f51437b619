#include "instantiate.cuh"

Kernels kernels_tf32(CellKind cell) { return kernels_of_type<TensorCores<float>>(cell); }
