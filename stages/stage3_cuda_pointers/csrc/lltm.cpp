// The LLTM cell on a GPU: checks, matrix products in ATen, kernel launches, and the binding to Python.
#include <ATen/Dispatch.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/addmm.h>
#include <ATen/ops/cat.h>
#include <ATen/ops/empty_like.h>
#include <c10/cuda/CUDAException.h>
#include <c10/cuda/CUDAGuard.h>
#include <c10/cuda/CUDAStream.h>
#include <torch/csrc/utils/pybind.h>

#include <array>
#include <optional>
#include <tuple>

using at::Tensor;

// Defined in lltm_kernel.cu, for float and double.
template <typename scalar_t>
cudaError_t launch_forward(scalar_t* new_h, scalar_t* new_cell, scalar_t* gates, const scalar_t* z,
                           const scalar_t* old_cell, int64_t batch_size, int64_t state_size,
                           cudaStream_t stream);
template <typename scalar_t>
cudaError_t launch_backward(scalar_t* d_z, scalar_t* d_old_cell, const scalar_t* grad_h,
                            const scalar_t* grad_cell, const scalar_t* gates, const scalar_t* new_cell,
                            int64_t batch_size, int64_t state_size, cudaStream_t stream);

void check_arguments(const Tensor& input, const Tensor& weights, const Tensor& bias, const Tensor& old_h,
                     const Tensor& old_cell) {
  TORCH_CHECK(input.is_cuda(), "lltm: input is on ", input.device(), ", expected a CUDA device");
  TORCH_CHECK(input.scalar_type() == at::kFloat || input.scalar_type() == at::kDouble,
              "lltm: input has dtype ", input.scalar_type(), ", expected Float or Double");
  TORCH_CHECK(input.dim() == 2, "lltm: input has shape ", input.sizes(), ", expected two dimensions: (B, I)");
  TORCH_CHECK(weights.dim() == 2, "lltm: weights has shape ", weights.sizes(),
              ", expected two dimensions: (3S, S+I)");
  const int64_t B = input.size(0), I = input.size(1), S = weights.size(0) / 3;

  auto check = [&](const char* name, const Tensor& tensor, at::IntArrayRef shape) {
    TORCH_CHECK(tensor.scalar_type() == input.scalar_type(), "lltm: ", name, " has dtype ",
                tensor.scalar_type(), ", but input has ", input.scalar_type());
    TORCH_CHECK(tensor.device() == input.device(), "lltm: ", name, " is on ", tensor.device(),
                ", but input is on ", input.device());
    TORCH_CHECK(tensor.sizes() == shape, "lltm: ", name, " has shape ", tensor.sizes(),
                ", but weights of shape ", weights.sizes(), " and input of shape ", input.sizes(),
                " call for ", shape);
  };
  check("weights", weights, {3 * S, S + I});
  check("bias", bias, {3 * S});
  check("old_h", old_h, {B, S});
  check("old_cell", old_cell, {B, S});
}

// Returns new_h, new_cell and what else backward needs: X and the activated gates.
std::tuple<Tensor, Tensor, Tensor, Tensor> forward(const Tensor& input,       // [B,I]
                                                   const Tensor& weights,     // [3S,S+I]
                                                   const Tensor& bias,        // [3S]
                                                   const Tensor& old_h,       // [B,S]
                                                   const Tensor& old_cell) {  // [B,S]
  check_arguments(input, weights, bias, old_h, old_cell);
  const c10::cuda::CUDAGuard guard(input.device());
  const int64_t B = old_cell.size(0), S = old_cell.size(1);

  Tensor X = at::cat({old_h, input}, 1);       // [B,S+I]
  Tensor z = at::addmm(bias, X, weights.t());  // [B,3S]
  // The copy needs a name: the memory of a temporary would be freed before the kernel reads it.
  Tensor contiguous_cell = old_cell.contiguous();

  // Every element will be written, so nothing needs to be zeroed.
  Tensor gates = at::empty_like(z);
  Tensor new_h = at::empty_like(contiguous_cell);
  Tensor new_cell = at::empty_like(contiguous_cell);
  AT_DISPATCH_FLOATING_TYPES(z.scalar_type(), "lltm_forward", [&] {
    C10_CUDA_CHECK(launch_forward<scalar_t>(
        new_h.mutable_data_ptr<scalar_t>(), new_cell.mutable_data_ptr<scalar_t>(),
        gates.mutable_data_ptr<scalar_t>(), z.const_data_ptr<scalar_t>(),
        contiguous_cell.const_data_ptr<scalar_t>(), B, S, c10::cuda::getCurrentCUDAStream()));
  });
  return {new_h, new_cell, X, gates};
}

// Returns d_input, d_weights, d_bias, d_old_h and d_old_cell; undefined (None in Python) where not needed.
std::tuple<Tensor, Tensor, Tensor, Tensor, Tensor> backward(
    const std::optional<Tensor>& grad_h,     // [B,S], nullopt counts as zero
    const std::optional<Tensor>& grad_cell,  // [B,S], the same
    const Tensor& weights,                   // [3S,S+I]
    const Tensor& X,                         // [B,S+I]
    const Tensor& gates,                     // [B,3S]
    const Tensor& new_cell,                  // [B,S]
    const std::array<bool, 5>& needs_input_grad) {
  if (!grad_h && !grad_cell) return {};
  const c10::cuda::CUDAGuard guard(gates.device());
  const int64_t B = new_cell.size(0), S = new_cell.size(1);

  // A gradient may have any strides: that of a bare sum() is a single number, expanded.
  Tensor contiguous_h = grad_h ? grad_h->contiguous() : Tensor();
  Tensor contiguous_cell = grad_cell ? grad_cell->contiguous() : Tensor();
  Tensor d_z = at::empty_like(gates);
  Tensor d_new_cell = at::empty_like(new_cell);
  AT_DISPATCH_FLOATING_TYPES(gates.scalar_type(), "lltm_backward", [&] {
    C10_CUDA_CHECK(launch_backward<scalar_t>(
        d_z.mutable_data_ptr<scalar_t>(), d_new_cell.mutable_data_ptr<scalar_t>(),
        grad_h ? contiguous_h.const_data_ptr<scalar_t>() : nullptr,
        grad_cell ? contiguous_cell.const_data_ptr<scalar_t>() : nullptr, gates.const_data_ptr<scalar_t>(),
        new_cell.const_data_ptr<scalar_t>(), B, S, c10::cuda::getCurrentCUDAStream()));
  });

  auto [needs_input, needs_weights, needs_bias, needs_old_h, needs_old_cell] = needs_input_grad;
  Tensor d_input, d_weights, d_bias, d_old_h, d_old_cell;
  if (needs_input || needs_old_h) {
    Tensor d_X = d_z.mm(weights);  // [B,S+I]
    d_old_h = d_X.narrow(1, 0, S);
    d_input = d_X.narrow(1, S, X.size(1) - S);
  }
  if (needs_weights) d_weights = d_z.t().mm(X);
  if (needs_bias) d_bias = d_z.sum(0);
  if (needs_old_cell) d_old_cell = d_new_cell;
  return {d_input, d_weights, d_bias, d_old_h, d_old_cell};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.doc() = "The LLTM cell over CUDA kernels.";
  m.def("forward", &forward, "-> (new_h, new_cell, X, gates)", py::arg("input"), py::arg("weights"),
        py::arg("bias"), py::arg("old_h"), py::arg("old_cell"), py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward, "-> (d_input, d_weights, d_bias, d_old_h, d_old_cell), None where not needed",
        py::arg("grad_h"), py::arg("grad_cell"), py::arg("weights"), py::arg("X"), py::arg("gates"),
        py::arg("new_cell"), py::arg("needs_input_grad"), py::call_guard<py::gil_scoped_release>());
}
