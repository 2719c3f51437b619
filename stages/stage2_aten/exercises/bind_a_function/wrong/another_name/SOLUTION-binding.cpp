PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) { m.def("elu_derivative", &d_elu, "The derivative.", py::arg("e")); }
