// The arithmetic of mix.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>

using at::Tensor;

// Returns a * share + b * (1 - share), for a and b of the same shape.
Tensor blend(const Tensor& a, const Tensor& b, float share) { return a * share + b * (1 - share); }
