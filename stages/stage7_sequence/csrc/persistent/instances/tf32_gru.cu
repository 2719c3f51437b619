#include "../instantiate.cuh"

template Kernels kernels_of<Gru, Scalar::kTf32>();
