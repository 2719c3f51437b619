// Reads of textures: coordinates to texels, and linear filtering.
//
// CUDA's guide describes both (Texture Fetching). A coordinate is multiplied by the size if it is normalised.
// The texel with number i covers [i, i + 1). Linear filtering takes the texels around the coordinate minus
// one half; its weights have eight bits behind the point.
#include <algorithm>
#include <cmath>
#include <cstring>

#include "../state/launch_state.h"
#include "emulator/small_floats.h"
#include "image_objects.h"

namespace emulator {
namespace {

constexpr float kWeightSteps = 256;  // of the hardware's weights, of which 1 is one, too

struct Components {
  float values[4];
};

// In one direction: the texels on both sides of a coordinate, and the weight of the second.
struct Neighbours {
  long long first;
  float weight;  // of the texel behind the first; 0 without filtering
};

// A texel number that an address mode moves into the image; -1 for one in the border.
long long address(long long i, long long size, cudaTextureAddressMode mode) {
  const long long period = mode == cudaAddressModeMirror ? 2 * size : size;
  switch (mode) {
    case cudaAddressModeWrap:
    case cudaAddressModeMirror:
      i = (i % period + period) % period;
      return i < size ? i : 2 * size - 1 - i;
    case cudaAddressModeBorder:
      return i < 0 || i >= size ? -1 : i;
    default:
      return std::clamp(i, 0LL, size - 1);
  }
}

// One read: the texture, and where and by which function it is read.
class TextureRead {
 public:
  TextureRead(const ImageObject& texture, const ImageFunction& function, const void* pc)
      : texture_(texture), image_(texture.image), function_(function), pc_(pc) {}

  bool returns_floats() const { return image_.type.kind == cudaChannelFormatKindFloat || is_normalised(); }

  FetchedTexel point(const TexturePoint& at) const {
    return texel(around(at.x, 0).first, around(at.y, 1).first, slice(at));
  }

  FetchedTexel linear(const TexturePoint& at) const {
    const Neighbours x = around(at.x, 0), y = around(at.y, 1);
    const bool has_depth = image_.dimensions == 3;
    const Neighbours z = has_depth ? around(at.z, 2) : Neighbours{slice(at), 0};
    Components sum{};
    for (int corner = 0; corner < 8; corner++) {
      const int i = corner & 1, j = corner >> 1 & 1, k = corner >> 2;
      const float weight =
          (i ? x.weight : 1 - x.weight) * (j ? y.weight : 1 - y.weight) * (k ? z.weight : 1 - z.weight);
      const bool is_in_image = (!i || x.weight) && (!j || y.weight) && (!k || z.weight);
      if (!is_in_image) continue;  // the hardware does not need such a texel
      Components part;
      const FetchedTexel read = texel(x.first + i, y.first + j, z.first + k);
      std::memcpy(&part, &read, sizeof(part));
      for (int c = 0; c < 4; c++) sum.values[c] += weight * part.values[c];
    }
    FetchedTexel result;
    std::memcpy(&result, &sum, sizeof(result));
    return result;
  }

  FetchedTexel element(long long index) const { return decode(image_.texel(std::size_t(index), 0, 0)); }

 private:
  const cudaTextureDesc& sampling() const { return texture_.sampling; }
  bool is_normalised() const {
    return sampling().readMode == cudaReadModeNormalizedFloat && image_.type.bits < 32;
  }
  bool filters() const { return sampling().filterMode == cudaFilterModeLinear; }
  long long size(int direction) const {
    return (long long)(direction == 0 ? image_.width : direction == 1 ? image_.height : image_.depth);
  }

  Neighbours around(float coordinate, int direction) const {
    if (direction >= image_.dimensions) return {0, 0};
    double at = double(coordinate) * double(sampling().normalizedCoords ? size(direction) : 1);
    at = std::clamp(std::isnan(at) ? 0 : at, -0x1p40, 0x1p40);
    if (!filters()) return {(long long)std::floor(at), 0};
    at -= 0.5;
    const double first = std::floor(at);
    return {(long long)first, float(std::round((at - first) * kWeightSteps) / kWeightSteps)};
  }

  long long slice(const TexturePoint& at) const {
    if (image_.is_layered) return std::clamp<long long>(at.layer, 0, size(2) - 1);
    return image_.dimensions == 3 ? around(at.z, 2).first : 0;
  }

  // Wrapping and mirroring need normalised coordinates; without them, CUDA clamps.
  cudaTextureAddressMode mode(int direction) const {
    const auto mode = sampling().addressMode[direction];
    const bool repeats = mode == cudaAddressModeWrap || mode == cudaAddressModeMirror;
    return repeats && !sampling().normalizedCoords ? cudaAddressModeClamp : mode;
  }

  FetchedTexel texel(long long x, long long y, long long z) const {
    x = address(x, size(0), mode(0));
    if (image_.dimensions > 1) y = address(y, size(1), mode(1));
    if (image_.dimensions > 2) z = address(z, size(2), mode(2));
    if (x < 0 || y < 0 || z < 0) return border();
    return decode(image_.texel(std::size_t(x), std::size_t(y), std::size_t(z)));
  }

  FetchedTexel border() const {
    FetchedTexel made{};
    for (unsigned c = 0; c < image_.type.components; c++) {
      const float value = sampling().borderColor[c];
      made.components[c] =
          returns_floats() ? std::uint32_t(__builtin_bit_cast(std::uint32_t, value)) : std::uint32_t(value);
    }
    return made;
  }

  FetchedTexel decode(const std::byte* texel) const {
    check_texel_read(texture_, texel, image_.texel_bytes(), function_, pc_);
    FetchedTexel made{};
    const std::size_t bytes = image_.type.bits / 8;
    for (unsigned c = 0; c < image_.type.components; c++) {
      std::uint32_t bits = 0;
      std::memcpy(&bits, texel + c * bytes, bytes);
      made.components[c] = component(bits);
    }
    return made;
  }

  // A component of memory as 32 bits: integers are extended, or become floats in [0, 1] or [-1, 1].
  std::uint32_t component(std::uint32_t bits) const {
    const unsigned size = image_.type.bits;
    if (image_.type.kind == cudaChannelFormatKindFloat)
      return size == 32 ? bits : __builtin_bit_cast(std::uint32_t, read_format(bits, kHalf));
    const bool is_signed = image_.type.kind == cudaChannelFormatKindSigned;
    const auto extended = is_signed ? std::int32_t(bits << (32 - size)) >> (32 - size) : std::int32_t(bits);
    if (!is_normalised()) return std::uint32_t(extended);
    const auto most = float((1u << (is_signed ? size - 1 : size)) - 1);
    return __builtin_bit_cast(std::uint32_t, std::max(float(extended) / most, -1.0f));
  }

  const ImageObject& texture_;
  const Image& image_;
  const ImageFunction& function_;
  const void* pc_;
};

// The type that the kernel asks for must be that of the texels, or float where they are read as floats. It
// may have fewer components.
void check_type(const ImageObject& texture, bool returns_floats, const ImageFunction& function,
                TexelType type, const void* pc) {
  TexelType stored = texture.image.type;
  if (returns_floats) stored.kind = cudaChannelFormatKindFloat, stored.bits = 32;
  if (type.kind == stored.kind && type.bits == stored.bits && type.components <= stored.components) return;
  const bool is_float = type.kind == cudaChannelFormatKindFloat;
  std::string detail = "it returns " + text_of(stored) + " here";
  if (is_float && !returns_floats && stored.bits < 32)
    detail += "; with readMode = cudaReadModeNormalizedFloat it would return floats";
  report_use(texture, "other type",
             std::string(function.name) + "<" + text_of(type) + "> reads " + texture.name +
                 ", whose texels are " + text_of(texture.image.type),
             std::move(detail), false, pc);
}

}  // namespace

__attribute__((noinline)) FetchedTexel read_texture(cudaTextureObject_t handle, const ImageFunction& function,
                                                    TexelType type, const TexturePoint& at) {
  const void* pc = static_cast<const char*>(__builtin_return_address(0)) - 1;
  if (!running.thread) abandon("calls %s outside of a kernel", function.name);
  const InRuntime inside;
  const ImageObject& texture = image_object(handle, false, function, pc);
  const TextureRead read(texture, function, pc);
  check_type(texture, read.returns_floats(), function, type, pc);
  if (function.is_linear) {
    const auto size = (long long)texture.image.width;
    if (at.index >= 0 && at.index < size) return read.element(at.index);
    report_use(texture, "past the end of a texture",
               std::string(function.name) + " reads element " + std::to_string(at.index) + " of " +
                   texture.name + ", which has " + size_text(texture.image),
               "a GPU returns 0 for it", true, pc);
    return {};
  }
  const bool filters = texture.sampling.filterMode == cudaFilterModeLinear;
  return filters ? read.linear(at) : read.point(at);
}

}  // namespace emulator
