// Compresses tensors without loss, with a library that torch does not include: zlib.
// To install it: sudo apt install zlib1g-dev (comes with Python's own headers), or conda install zlib.
#include <ATen/core/Tensor.h>
#include <ATen/ops/empty.h>
#include <torch/csrc/utils/pybind.h>
#include <zlib.h>

using at::Tensor;

void check(const Tensor& x, const char* name) {
  TORCH_CHECK(x.is_cpu(), name, " is on ", x.device(), ", expected a CPU tensor");
  TORCH_CHECK(x.is_floating_point(), name, " has dtype ", x.scalar_type(), ", expected a floating-point one");
}

// Returns the bytes of x, of any shape and strides, compressed: [bytes] in uint8.
Tensor pack(const Tensor& x, int64_t level) {
  check(x, "pack: x");
  TORCH_CHECK(0 <= level && level <= 9, "pack: level is ", level, ", expected 0 to 9");
  const Tensor dense = x.resolve_neg().contiguous();
  uLong size = compressBound(dense.nbytes());  // the largest possible size; then the actual one
  Tensor packed = at::empty({static_cast<int64_t>(size)}, at::kByte);
  const auto* bytes = static_cast<const Bytef*>(dense.const_data_ptr());
  const int status = compress2(packed.mutable_data_ptr<uint8_t>(), &size, bytes, dense.nbytes(), level);
  TORCH_CHECK(status == Z_OK, "pack: zlib says: ", zError(status));
  return packed.narrow(0, 0, size).clone();
}

// Returns the tensor that was compressed, with the shape and dtype of `like`, whose values do not matter.
Tensor unpack(const Tensor& packed, const Tensor& like) {
  check(like, "unpack: like");
  TORCH_CHECK(packed.is_cpu() && packed.scalar_type() == at::kByte, "unpack: packed has dtype ",
              packed.scalar_type(), " on ", packed.device(), ", expected uint8 on the CPU");
  const Tensor dense = packed.contiguous();
  Tensor x = at::empty(like.sizes(), like.options());
  uLong size = x.nbytes();
  auto* bytes = static_cast<Bytef*>(x.mutable_data_ptr());
  const int status = uncompress(bytes, &size, dense.const_data_ptr<uint8_t>(), dense.nbytes());
  TORCH_CHECK(status == Z_OK && size == x.nbytes(), "unpack: packed does not contain a tensor of shape ",
              like.sizes(), " in ", like.scalar_type());
  return x;
}

PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {
  const auto unlocked = py::call_guard<py::gil_scoped_release>();
  m.def("pack", &pack, "The bytes of x, compressed.", py::arg("x"), py::arg("level") = 6, unlocked);
  m.def("unpack", &unpack, "The tensor that was compressed.", py::arg("packed"), py::arg("like"), unlocked);
}
