// A thread that gives up tensors which Python knows, one after the other; it needs the interpreter's lock for
// each.
#include <Python.h>
#include <torch/csrc/autograd/python_variable.h>

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

std::thread* thread;  // never destroyed: destroyed before it was joined, it would end the process by itself

extern "C" void give_up(PyObject* list) {
  std::vector<at::Tensor> tensors;
  for (Py_ssize_t k = 0; k < PyList_Size(list); ++k)
    tensors.push_back(THPVariable_Unpack(PyList_GetItem(list, k)));
  thread = new std::thread([tensors = std::move(tensors)]() mutable {
    for (; !tensors.empty(); tensors.pop_back()) std::this_thread::sleep_for(std::chrono::microseconds(100));
  });
}

extern "C" void join() { thread->join(); }
