// The pointwise part of a minimal gated unit, as two operators for the CPU.
#include <Python.h>

#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/TensorAccessor.h>
#include <ATen/ops/empty.h>
#include <torch/library.h>

#include <cmath>

using at::Tensor;

template <typename scalar_t>
scalar_t sigmoid(scalar_t z) {
  return 1 / (1 + std::exp(-z));
}

// BEGIN SOLUTION operators: unit::step and unit::step_backward, with their schemas and kernels for the CPU.
template <typename scalar_t>
void step_rows(at::TensorAccessor<scalar_t, 2> new_h,          // [B,S]
               at::TensorAccessor<scalar_t, 3> gates,          // [B,2,S]: forget, candidate
               at::TensorAccessor<const scalar_t, 2> z,        // [B,2S], same order, any strides
               at::TensorAccessor<const scalar_t, 2> old_h) {  // [B,S], any strides
  const int64_t S = old_h.size(1);
  for (int64_t row = 0; row < old_h.size(0); ++row) {
    for (int64_t unit = 0; unit < S; ++unit) {
      const scalar_t forget = sigmoid(z[row][unit]);
      const scalar_t candidate = std::tanh(z[row][S + unit]);
      gates[row][0][unit] = forget;
      gates[row][1][unit] = candidate;
      new_h[row][unit] = (1 - forget) * old_h[row][unit] + forget * candidate;
    }
  }
}

template <typename scalar_t>
void step_backward_rows(at::TensorAccessor<scalar_t, 2> d_z,            // [B,2S]: forget, candidate
                        at::TensorAccessor<scalar_t, 2> d_old_h,        // [B,S]
                        at::TensorAccessor<const scalar_t, 2> grad_h,   // [B,S], any strides
                        at::TensorAccessor<const scalar_t, 3> gates,    // [B,2,S]
                        at::TensorAccessor<const scalar_t, 2> old_h) {  // [B,S], any strides
  const int64_t S = old_h.size(1);
  for (int64_t row = 0; row < old_h.size(0); ++row) {
    for (int64_t unit = 0; unit < S; ++unit) {
      const scalar_t forget = gates[row][0][unit], candidate = gates[row][1][unit],
                     d_new_h = grad_h[row][unit];
      d_z[row][unit] = d_new_h * (candidate - old_h[row][unit]) * forget * (1 - forget);
      d_z[row][S + unit] = d_new_h * forget * (1 - candidate * candidate);
      d_old_h[row][unit] = d_new_h * (1 - forget);
    }
  }
}

std::tuple<Tensor, Tensor> step(const Tensor& z,        // [B,2S]
                                const Tensor& old_h) {  // [B,S]
  const int64_t B = old_h.size(0), S = old_h.size(1);
  Tensor new_h = at::empty({B, S}, z.options()), gates = at::empty({B, 2, S}, z.options());
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "unit_step", [&] {
    step_rows<scalar_t>(new_h.accessor<scalar_t, 2>(), gates.accessor<scalar_t, 3>(),
                        z.accessor<const scalar_t, 2>(), old_h.accessor<const scalar_t, 2>());
  });
  return {new_h, gates};
}

std::tuple<Tensor, Tensor> step_backward(const Tensor& grad_h,   // [B,S]
                                         const Tensor& gates,    // [B,2,S]
                                         const Tensor& old_h) {  // [B,S]
  const int64_t B = old_h.size(0), S = old_h.size(1);
  Tensor d_z = at::empty({B, 2 * S}, gates.options()), d_old_h = at::empty({B, S}, gates.options());
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "unit_step_backward", [&] {
    step_backward_rows<scalar_t>(d_z.accessor<scalar_t, 2>(), d_old_h.accessor<scalar_t, 2>(),
                                 grad_h.accessor<const scalar_t, 2>(), gates.accessor<const scalar_t, 3>(),
                                 old_h.accessor<const scalar_t, 2>());
  });
  return {d_z, d_old_h};
}

TORCH_LIBRARY(unit, m) {
  m.def("step(Tensor z, Tensor old_h) -> (Tensor new_h, Tensor gates)");
  m.def("step_backward(Tensor grad_h, Tensor gates, Tensor old_h) -> (Tensor d_z, Tensor d_old_h)");
}

TORCH_LIBRARY_IMPL(unit, CPU, m) {
  m.impl("step", &step);
  m.impl("step_backward", &step_backward);
}
// END SOLUTION

PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The namespace unit.", -1, nullptr};
  return PyModule_Create(&definition);
}
