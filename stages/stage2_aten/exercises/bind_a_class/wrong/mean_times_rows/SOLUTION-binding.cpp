PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<RunningMean>(m, "RunningMean")
      .def(py::init<int64_t>(), py::arg("S"))
      .def("add", &RunningMean::add, "Adds rows.", py::arg("x"))
      .def_property_readonly("mean", &RunningMean::mean)
      .def_property_readonly("rows", &RunningMean::rows)
      .def(py::pickle([](const RunningMean& self) { return py::make_tuple(self.mean(), self.rows()); },
                      [](const py::tuple& state) {
                        const auto rows = state[1].cast<int64_t>();
                        return RunningMean(state[0].cast<Tensor>() * rows, rows);
                      }));
}
