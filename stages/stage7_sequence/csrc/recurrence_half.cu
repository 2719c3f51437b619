#include "instantiate.cuh"

Kernels kernels_half(CellKind cell) { return kernels_of_type<TensorCores<half>>(cell); }
