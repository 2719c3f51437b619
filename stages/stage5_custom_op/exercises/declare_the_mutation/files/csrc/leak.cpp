// Two operators that make a cell forget: each unit keeps its own share of its value.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/add.h>
#include <ATen/ops/mul.h>
#include <ATen/ops/sub.h>
#include <torch/library.h>

using at::Tensor;

// cell becomes cell * share.
void leak_(Tensor cell,            // [B,S]
           const Tensor& share) {  // [S]
  cell.mul_(share);
}

// Returns cell * share, and adds the part that was lost to `lost`.
Tensor leak(const Tensor& cell,   // [B,S]
            const Tensor& share,  // [S]
            Tensor lost) {        // [B,S]
  Tensor kept = at::mul(cell, share);
  lost.add_(at::sub(cell, kept));
  return kept;
}

TORCH_LIBRARY(leak, m) {
  // BEGIN SOLUTION
  m.def("leak_(Tensor(a!) cell, Tensor share) -> ()");
  m.def("leak(Tensor cell, Tensor share, Tensor(a!) lost) -> Tensor");
  // BEGIN STARTER
  // m.def("leak_(Tensor cell, Tensor share) -> ()");
  // m.def("leak(Tensor cell, Tensor share, Tensor lost) -> Tensor");
  // END STARTER
  // END SOLUTION
}

TORCH_LIBRARY_IMPL(leak, CPU, m) {
  m.impl("leak_", &leak_);
  m.impl("leak", &leak);
}

PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "Operators of the namespace leak.", -1,
                                   nullptr};
  return PyModule_Create(&definition);
}
