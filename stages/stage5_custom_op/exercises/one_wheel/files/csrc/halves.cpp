// One operator, halves::half, and a module that lists it.
#include <Python.h>

#include <ATen/core/Tensor.h>
#include <ATen/ops/mul.h>
#include <torch/library.h>

at::Tensor half(const at::Tensor& x) {  // any shape
  return at::mul(x, 0.5);
}

TORCH_LIBRARY(halves, m) { m.def("half(Tensor x) -> Tensor"); }

TORCH_LIBRARY_IMPL(halves, CPU, m) { m.impl("half", &half); }

// The names of the operators, as a list.
PyObject* operators(PyObject*, PyObject*) {
  PyObject* names = PyList_New(1);
  // BEGIN SOLUTION list
  if (names) PyList_SetItem(names, 0, PyUnicode_FromString("half"));
  // BEGIN STARTER
  // if (names) PyList_SET_ITEM(names, 0, PyUnicode_FromString("half"));
  // END STARTER
  // END SOLUTION
  return names;
}

PyMODINIT_FUNC PyInit__C() {
  static PyMethodDef functions[] = {{"operators", &operators, METH_NOARGS, "The names of the operators."},
                                    {nullptr, nullptr, 0, nullptr}};
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "The namespace halves.", -1, functions};
  return PyModule_Create(&definition);
}
