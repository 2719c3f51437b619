// The bare interface of Python: this compiles in a second, where torch's headers take twenty.
#include <Python.h>

static PyObject* triple(PyObject*, PyObject* x) {
  // BEGIN SOLUTION
  return PyLong_FromLongLong(3 * PyLong_AsLongLong(x));
  // BEGIN STARTER
  // return PyLong_FromLongLong(PyLong_AsLongLong(x));
  // END STARTER
  // END SOLUTION
}

static PyMethodDef methods[] = {{"triple", triple, METH_O, "Three times a number."}, {}};
static PyModuleDef module = {PyModuleDef_HEAD_INIT, "_C", nullptr, -1, methods};

PyMODINIT_FUNC PyInit__C() { return PyModule_Create(&module); }
