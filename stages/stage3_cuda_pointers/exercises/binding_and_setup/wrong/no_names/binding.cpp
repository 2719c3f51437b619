PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("forward", &forward, "The cell.", py::call_guard<py::gil_scoped_release>());
  m.def("backward", &backward, "Its gradients.", py::call_guard<py::gil_scoped_release>());
}
