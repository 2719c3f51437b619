// A class whose objects keep tensors between calls, and its binding to Python.
#include <ATen/TensorOperators.h>
#include <ATen/core/Tensor.h>
#include <ATen/ops/zeros.h>
#include <torch/csrc/utils/pybind.h>

using at::Tensor;

// The mean over all rows so far.
class RunningMean {
 public:
  explicit RunningMean(int64_t S) : RunningMean(at::zeros({S}, at::kDouble), 0) {}

  // An object in the state of another one: its sum [S] and how many rows are in it.
  RunningMean(const Tensor& sum, int64_t rows) : sum_(sum), rows_(rows) {}

  // x [B,S], of any dtype
  void add(const Tensor& x) {
    TORCH_CHECK(x.dim() == 2 && x.size(1) == sum_.size(0), "add: x has shape ", x.sizes(), ", expected (B, ",
                sum_.size(0), ")");
    sum_ = sum_ + x.to(at::kDouble).sum(0, /*keepdim=*/false);
    rows_ += x.size(0);
  }

  Tensor mean() const { return sum_ / rows_; }  // [S], float64; NaN without any rows
  Tensor sum() const { return sum_; }           // [S], float64
  int64_t rows() const { return rows_; }

 private:
  Tensor sum_;
  int64_t rows_;
};

// BEGIN SOLUTION binding: bind RunningMean with its constructor, add, the properties mean and rows, and
// py::pickle.
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<RunningMean>(m, "RunningMean", "The mean over all rows so far.")
      .def(py::init<int64_t>(), py::arg("S"))
      .def("add", &RunningMean::add, "Adds the rows of x (B, S).", py::arg("x"))
      .def_property_readonly("mean", &RunningMean::mean)
      .def_property_readonly("rows", &RunningMean::rows)
      .def(py::pickle([](const RunningMean& self) { return py::make_tuple(self.sum(), self.rows()); },
                      [](const py::tuple& state) {
                        return RunningMean(state[0].cast<Tensor>(), state[1].cast<int64_t>());
                      }));
}
// BEGIN STARTER
// PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}
// END STARTER
// END SOLUTION
