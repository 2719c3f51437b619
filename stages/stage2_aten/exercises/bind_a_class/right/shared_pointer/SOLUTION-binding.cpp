// A holder of another kind, and methods written as lambdas.
PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  py::class_<RunningMean, std::shared_ptr<RunningMean>> bound(m, "RunningMean");
  bound.def(py::init([](int64_t size) { return std::make_shared<RunningMean>(size); }), py::arg("S"));
  bound.def(
      "add", [](RunningMean& self, const Tensor& x) { self.add(x); }, py::arg("x"), "One batch more.");
  bound.def_property_readonly("mean", [](const RunningMean& self) { return self.mean(); });
  bound.def_property_readonly("rows", [](const RunningMean& self) { return self.rows(); });
  bound.def("__getstate__", [](const RunningMean& self) { return py::make_tuple(self.rows(), self.sum()); });
  bound.def("__setstate__", [](py::object self, const py::tuple& state) {
    self.attr("__init__")(state[1].cast<Tensor>().size(0));
    self.cast<RunningMean&>() = RunningMean(state[1].cast<Tensor>(), state[0].cast<int64_t>());
  });
}
