PYBIND11_MODULE(mix, m) {
  m.def("mix", &mix, "Returns a, b and their mixture.", py::arg("a"), py::arg("b"), py::arg("share"));
}
