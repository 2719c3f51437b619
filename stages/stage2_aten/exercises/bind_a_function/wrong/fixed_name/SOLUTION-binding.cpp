PYBIND11_MODULE(bound, m) { m.def("d_elu", &d_elu, "The derivative.", py::arg("e")); }
