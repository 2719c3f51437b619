// A checksum of a tensor, computed by zlib.
#include <ATen/core/Tensor.h>
#include <torch/csrc/utils/pybind.h>
#include <zlib.h>

using at::Tensor;

// The CRC-32 of the elements of x, a CPU tensor of any dtype, shape and strides, in row order.
int64_t checksum(const Tensor& x) {
  TORCH_CHECK(x.is_cpu(), "checksum: x is on ", x.device(), ", expected a CPU tensor");
  // BEGIN SOLUTION checksum: call crc32 with 0, the bytes of x, and their number.
  const Tensor dense = x.resolve_conj().resolve_neg().contiguous();  // z.conj() only marks z
  return crc32(0, static_cast<const Bytef*>(dense.const_data_ptr()), dense.nbytes());
  // BEGIN STARTER
  // return 0;
  // END STARTER
  // END SOLUTION
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  m.def("checksum", &checksum, "The CRC-32 of the elements of x.", py::arg("x"));
}
