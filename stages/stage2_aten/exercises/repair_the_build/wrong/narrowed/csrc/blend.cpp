// The arithmetic of mix.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

using at::Tensor;

// a * share + b * (1 - share), of the shape of both.
Tensor blend(const Tensor& a, const Tensor& b, float share) { return a * share + b * (1 - share); }
