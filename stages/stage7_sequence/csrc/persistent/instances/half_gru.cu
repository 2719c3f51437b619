#include "../instantiate.cuh"

template Kernels kernels_of<Gru, Scalar::kHalf>();
