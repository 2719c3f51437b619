#include "instantiate.cuh"

Kernels kernels_double(CellKind cell) { return kernels_of_type<FmaUnits<double>>(cell); }
