#include "image.h"

#include <algorithm>

namespace emulator {

bool is_valid(const cudaChannelFormatDesc& format) {
  const int bits[] = {format.x, format.y, format.z, format.w};
  const auto components = int(std::find(bits, bits + 4, 0) - bits);
  const bool are_alike = std::all_of(bits, bits + components, [&](int each) { return each == format.x; }) &&
                         std::all_of(bits + components, bits + 4, [](int each) { return each == 0; });
  const bool is_integer =
      format.f == cudaChannelFormatKindSigned || format.f == cudaChannelFormatKindUnsigned;
  const bool has_bits = format.x == 16 || format.x == 32 || (is_integer && format.x == 8);
  return are_alike && has_bits && components != 3 && (is_integer || format.f == cudaChannelFormatKindFloat);
}

TexelType type_of(const cudaChannelFormatDesc& format) {
  const unsigned components = format.w ? 4 : format.y ? 2 : 1;
  return {format.f, unsigned(format.x), components};
}

Image image_of(const cudaArray& array) {
  Image image;
  image.begin = array.begin;
  image.type = type_of(array.format);
  image.is_layered = array.flags & cudaArrayLayered;
  image.dimensions = array.extent.height == 0 ? 1 : array.extent.depth == 0 || image.is_layered ? 2 : 3;
  image.width = array.extent.width;
  image.height = std::max<std::size_t>(1, array.extent.height);
  image.depth = std::max<std::size_t>(1, array.extent.depth);
  image.pitch = image.width * image.texel_bytes();
  return image;
}

std::string text_of(const TexelType& type) {
  std::string name = type.kind == cudaChannelFormatKindFloat ? (type.bits == 16 ? "half" : "float")
                     : type.bits == 8                        ? "char"
                     : type.bits == 16                       ? "short"
                                                             : "int";
  if (type.kind == cudaChannelFormatKindUnsigned) name = "u" + name;
  return type.components == 1 ? name : name + std::to_string(type.components);
}

std::string kind_text(const Image& image) {
  if (image.is_linear) return "linear memory";
  static constexpr const char* kDimensions[] = {"one", "two", "three"};
  return std::string("a ") + (image.is_layered ? "layered " : "") + kDimensions[image.dimensions - 1] +
         "-dimensional image";
}

std::string size_text(const Image& image) {
  std::string text = std::to_string(image.width);
  if (image.dimensions > 1) text += " x " + std::to_string(image.height);
  if (image.dimensions > 2) text += " x " + std::to_string(image.depth);
  text += image.width * image.height * image.depth == 1 ? " element" : " elements";
  if (image.is_layered) text += " in each of " + std::to_string(image.depth) + " layers";
  return text;
}

}  // namespace emulator
