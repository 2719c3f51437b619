PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("d_elu", &d_elu, "d_elu(e: torch.Tensor)\n\nThe derivative of elu.");
}
