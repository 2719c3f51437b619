#include "../instantiate.cuh"

template Kernels kernels_of<Lltm, Scalar::kDouble>();
