PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<RunningMean>(m, "RunningMean")
      .def(py::init<int64_t>(), py::arg("S"))
      .def("add", &RunningMean::add, "Adds rows.", py::arg("x"))
      .def("mean", &RunningMean::mean)
      .def("rows", &RunningMean::rows);
}
