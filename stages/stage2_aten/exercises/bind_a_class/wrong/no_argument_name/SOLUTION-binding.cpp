PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<RunningMean>(m, "RunningMean")
      .def(py::init<int64_t>())
      .def("add", &RunningMean::add, "Adds rows.")
      .def_property_readonly("mean", &RunningMean::mean)
      .def_property_readonly("rows", &RunningMean::rows);
}
