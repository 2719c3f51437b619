// Computes rows of the curve on all threads, and counts these threads. softsign.py calls both functions
// with ctypes.
#include <ATen/Parallel.h>
#include <Python.h>

#include <mutex>
#include <set>
#include <thread>

#include "curve.h"

extern "C" void softsign(float* out, const float* x, int64_t B, int64_t S) {
  at::parallel_for(
      0, B, 1, [&](int64_t begin, int64_t end) { curve(out + begin * S, x + begin * S, (end - begin) * S); });
}

extern "C" int64_t threads(int64_t B) {
  std::set<std::thread::id> seen;
  std::mutex lock;
  at::parallel_for(0, B, 1, [&](int64_t, int64_t) {
    const std::lock_guard<std::mutex> alone(lock);
    seen.insert(std::this_thread::get_id());
  });
  return int64_t(seen.size());
}

PyMODINIT_FUNC PyInit__C() {
  static PyModuleDef definition = {PyModuleDef_HEAD_INIT, "_C", "Functions for ctypes.", -1, nullptr};
  return PyModule_Create(&definition);
}
