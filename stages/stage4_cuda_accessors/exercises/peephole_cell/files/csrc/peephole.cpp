// The host code of the cell with peepholes: checks, allocations and the binding.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <c10/cuda/CUDAGuard.h>
#include <torch/csrc/utils/pybind.h>

#include <tuple>

using at::Tensor;

// Defined in peephole_kernel.cu.
void launch_forward(const Tensor& new_h, const Tensor& new_cell, const Tensor& gates, const Tensor& z,
                    const Tensor& peepholes, const Tensor& old_cell);
void launch_backward(const Tensor& d_z, const Tensor& d_old_cell, const Tensor& grad_h,
                     const Tensor& grad_cell, const Tensor& peepholes, const Tensor& old_cell,
                     const Tensor& gates, const Tensor& new_cell);

// Returns new_h, new_cell and the activated gates.
std::tuple<Tensor, Tensor, Tensor> forward(const Tensor& z,           // [B,3,S]
                                           const Tensor& peepholes,   // [2,S]
                                           const Tensor& old_cell) {  // [B,S]
  TORCH_CHECK(z.is_cuda(), "peephole: z is on ", z.device(), ", expected a CUDA device");
  TORCH_CHECK(z.dim() == 3 && z.size(1) == 3, "peephole: z has shape ", z.sizes(), ", expected (B, 3, S)");
  const c10::cuda::CUDAGuard guard(z.device());
  const int64_t B = z.size(0), S = z.size(2);
  TORCH_CHECK(peepholes.sizes() == at::IntArrayRef({2, S}), "peephole: peepholes has shape ",
              peepholes.sizes(), ", but z of shape ", z.sizes(), " calls for (2, S)");
  TORCH_CHECK(old_cell.sizes() == at::IntArrayRef({B, S}), "peephole: old_cell has shape ", old_cell.sizes(),
              ", but z of shape ", z.sizes(), " calls for (B, S)");
  Tensor gates = at::empty({B, 3, S}, z.options());
  Tensor new_h = at::empty({B, S}, z.options());
  Tensor new_cell = at::empty({B, S}, z.options());
  launch_forward(new_h, new_cell, gates, z, peepholes, old_cell);
  return {new_h, new_cell, gates};
}

// Returns d_z and d_old_cell.
std::tuple<Tensor, Tensor> backward(const Tensor& grad_h,      // [B,S]
                                    const Tensor& grad_cell,   // [B,S]
                                    const Tensor& peepholes,   // [2,S]
                                    const Tensor& old_cell,    // [B,S]
                                    const Tensor& gates,       // [B,3,S]
                                    const Tensor& new_cell) {  // [B,S]
  const c10::cuda::CUDAGuard guard(gates.device());
  Tensor d_z = at::empty(gates.sizes(), gates.options());
  Tensor d_old_cell = at::empty(new_cell.sizes(), new_cell.options());
  launch_backward(d_z, d_old_cell, grad_h, grad_cell, peepholes, old_cell, gates, new_cell);
  return {d_z, d_old_cell};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "-> (new_h, new_cell, gates)", py::arg("z"), py::arg("peepholes"),
        py::arg("old_cell"));
  m.def("backward", &backward, "-> (d_z, d_old_cell)", py::arg("grad_h"), py::arg("grad_cell"),
        py::arg("peepholes"), py::arg("old_cell"), py::arg("gates"), py::arg("new_cell"));
}
