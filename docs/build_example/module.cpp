// A Python module written by hand: no header of torch, so that everything here compiles in seconds.
#include <Python.h>

#include "cube.h"

static PyObject* cube(PyObject*, PyObject* number) {
  float x = static_cast<float>(PyFloat_AsDouble(number));
  if (PyErr_Occurred()) return nullptr;
  if (const char* error = cube_on_gpu(&x)) {
    PyErr_SetString(PyExc_RuntimeError, error);
    return nullptr;
  }
  return PyFloat_FromDouble(x);
}

static PyMethodDef methods[] = {{"cube", cube, METH_O, "x * x * x, on the GPU."},
                                {nullptr, nullptr, 0, nullptr}};
static PyModuleDef module = {
    PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods, nullptr, nullptr, nullptr, nullptr};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
