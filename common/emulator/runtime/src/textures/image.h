// The memory of a CUDA array, or of linear memory that a texture reads, as texels.
#pragma once

#include <cstddef>
#include <string>

#include "emulator/array_api.h"

struct cudaArray {
  cudaChannelFormatDesc format;
  cudaExtent extent;  // in elements; a height or depth that the array does not have is 0
  unsigned int flags;
  std::byte* begin;  // rows without gaps
};

EMULATOR_BEGIN
namespace emulator {

struct Image {
  const std::byte* begin = nullptr;
  TexelType type{};
  int dimensions = 1;
  bool is_layered = false;
  bool is_linear = false;                        // linear memory of one dimension, without an array
  std::size_t width = 0, height = 1, depth = 1;  // elements; the depth of a layered image is its layers
  std::size_t pitch = 0;                         // bytes from one row to the next

  std::size_t texel_bytes() const { return type.bits / 8 * type.components; }
  const std::byte* texel(std::size_t x, std::size_t y, std::size_t z) const {
    return begin + (z * height + y) * pitch + x * texel_bytes();
  }
};

bool is_valid(const cudaChannelFormatDesc& format);
TexelType type_of(const cudaChannelFormatDesc& format);
Image image_of(const cudaArray& array);
std::string text_of(const TexelType& type);  // "uchar4"
std::string kind_text(const Image& image);   // "a layered two-dimensional array"
std::string size_text(const Image& image);   // "8 x 6 elements"

}  // namespace emulator
EMULATOR_END
