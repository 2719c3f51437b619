#include "numpy_file.h"

#include <ATen/ops/empty.h>

#include <fstream>
#include <regex>

#include "sequence.h"

namespace {

constexpr uint32_t kLongestHeader = 65536;
constexpr int kMostDigits = 18;  // of a size

// The shape in a header such as {'descr': '<f4', 'fortran_order': False, 'shape': (297, 8, 8), }.
std::vector<int64_t> parse_header(const std::string& header, const std::string& path) {
  std::smatch found;
  if (!std::regex_search(header, found, std::regex(R"('descr': *'([^']*)')")) || found[1] != "<f4")
    throw Failure(kBadRequest, path, " holds numbers of type ", found.size() ? found[1].str() : "unknown",
                  "; expected <f4, which is float32");
  if (header.find("'fortran_order': False") == std::string::npos)
    throw Failure(kBadRequest, path, " is in Fortran order; save numpy.ascontiguousarray of it");
  if (!std::regex_search(header, found, std::regex(R"('shape': *\(([0-9, ]*)\))")))
    throw Failure(kBadRequest, path, " has no shape");
  const std::string sizes = found[1];
  std::vector<int64_t> shape;
  const std::regex size("[0-9]+");
  for (std::sregex_iterator one(sizes.begin(), sizes.end(), size), end; one != end; ++one) {
    if (one->length() > kMostDigits) throw Failure(kBadRequest, path, " has the shape (", sizes, ")");
    shape.push_back(std::stoll(one->str()));
  }
  return shape;
}

// The bytes of an array of float32; -1 if an int64 cannot hold their number.
int64_t bytes_of(const std::vector<int64_t>& shape) {
  int64_t bytes = sizeof(float);
  for (const int64_t size : shape)
    if (__builtin_mul_overflow(bytes, size, &bytes)) return -1;
  return bytes;
}

}  // namespace

at::Tensor read_numpy_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) throw Failure(kNotFound, path.string(), " cannot be read");
  char magic[8] = {};  // the last two: the version of the format
  file.read(magic, 8);
  uint32_t length = 0;
  file.read(reinterpret_cast<char*>(&length), magic[6] == 1 ? 2 : 4);
  const bool is_numpy = file && std::string(magic, 6) == "\x93NUMPY";
  std::string header(is_numpy ? std::min(length, kLongestHeader) : 0, ' ');
  file.read(header.data(), header.size());
  if (!is_numpy || !file) throw Failure(kBadRequest, path.string(), " is not a file of numpy.save");
  const auto shape = parse_header(header, path.string());
  const auto bytes = int64_t(std::filesystem::file_size(path)) - file.tellg();
  if (bytes_of(shape) != bytes)
    throw Failure(kBadRequest, path.string(), " has ", bytes,
                  " bytes of numbers, which do not fit its shape ", at::IntArrayRef(shape));
  auto array = at::empty(shape);
  file.read(static_cast<char*>(array.mutable_data_ptr()), bytes);
  return array;
}
