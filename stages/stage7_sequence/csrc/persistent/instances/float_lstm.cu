#include "../instantiate.cuh"

template Kernels kernels_of<Lstm, Scalar::kFloat>();
