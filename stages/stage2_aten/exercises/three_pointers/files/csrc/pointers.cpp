// Three functions that read a tensor through a raw pointer; float32 on the CPU.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/utils/pybind.h>

using at::Tensor;

void check(const Tensor& x) {
  TORCH_CHECK(x.is_cpu() && x.scalar_type() == at::kFloat, "x has dtype ", x.scalar_type(), " on ",
              x.device(), ", expected float32 on the CPU");
  TORCH_CHECK(x.dim() == 2 && x.numel() > 0, "x has shape ", x.sizes(), ", expected (N, M), not empty");
}

// The sum of each row: (N,M) -> (N).
Tensor row_sums(const Tensor& x) {
  check(x);
  const int64_t N = x.size(0), M = x.size(1);
  Tensor sums = at::empty({N}, x.options());
  float* sum = sums.mutable_data_ptr<float>();
  // BEGIN SOLUTION sums: `numbers` must point to the elements of x, row by row, as long as it is used.
  const Tensor dense = x.contiguous();
  const float* numbers = dense.const_data_ptr<float>();
  // BEGIN STARTER
  // const float* numbers = x.contiguous().const_data_ptr<float>();
  // END STARTER
  // END SOLUTION
  for (int64_t i = 0; i < N; ++i) {
    sum[i] = 0;
    for (int64_t j = 0; j < M; ++j) sum[i] += numbers[i * M + j];
  }
  return sums;
}

// Twice each element, in a contiguous tensor: (N,M) -> (N,M).
Tensor doubled(const Tensor& x) {
  check(x);
  Tensor result = at::empty(x.sizes(), x.options());
  float* to = result.mutable_data_ptr<float>();
  // BEGIN SOLUTION doubled: x need not be contiguous.
  const Tensor dense = x.contiguous();
  const float* from = dense.const_data_ptr<float>();
  // BEGIN STARTER
  // const float* from = x.const_data_ptr<float>();
  // END STARTER
  // END SOLUTION
  for (int64_t k = 0; k < x.numel(); ++k) to[k] = 2 * from[k];
  return result;
}

// The elements (0, 0) and (N-1, M-1), without a copy of x: (N,M) -> two numbers.
std::tuple<float, float> corners(const Tensor& x) {
  check(x);
  const int64_t last = (x.size(0) - 1) * x.stride(0) + (x.size(1) - 1) * x.stride(1);
  // BEGIN SOLUTION corners: where is element (0, 0)?
  const float* first = x.const_data_ptr<float>();
  // BEGIN STARTER
  // const float* first = x.const_data_ptr<float>() + x.storage_offset();
  // END STARTER
  // END SOLUTION
  return {first[0], first[last]};
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("row_sums", &row_sums, "The sum of each row.", py::arg("x"));
  m.def("doubled", &doubled, "Twice each element.", py::arg("x"));
  m.def("corners", &corners, "The first and the last element.", py::arg("x"));
}
