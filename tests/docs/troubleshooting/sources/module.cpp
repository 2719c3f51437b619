// The smallest extension module there is: no torch, no pybind11, compiled in half a second.
#include <Python.h>

#ifdef NEEDS  // a symbol that must be found when the module is loaded; its address is enough for that
extern "C" void NEEDS();
void (*needed)() = NEEDS;
#endif

#ifdef __OPTIMIZE__
static const int optimised = 1;
#else
static const int optimised = 0;
#endif

static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C"};

PyMODINIT_FUNC PyInit__C() {
  PyObject* self = PyModule_Create(&definition);
  PyModule_AddIntConstant(self, "optimised", optimised);
  return self;
}
