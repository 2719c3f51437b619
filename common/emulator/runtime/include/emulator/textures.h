// Functions of kernels that read textures, and that read and write surfaces.
//
// A texture's coordinate is a float: texel i has its centre at i + 0.5. A surface's x is a number of bytes.
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/array_api.h"

EMULATOR_BEGIN
namespace emulator {

// A function of CUDA, by the resources that it accepts.
struct ImageFunction {
  const char* name;
  int dimensions;
  bool is_layered = false;
  bool is_linear = false;  // accepts linear memory instead of an array
};

// What PTX's tex returns: four components of 32 bits, as floats or integers.
struct FetchedTexel {
  std::uint32_t components[4];
};

struct TexturePoint {
  float x = 0, y = 0, z = 0;
  int layer = 0, index = 0;  // the element of linear memory
};
FetchedTexel read_texture(cudaTextureObject_t texture, const ImageFunction& function, TexelType type,
                          const TexturePoint& at);

struct SurfacePoint {
  int x, y = 0, z = 0;  // of a layered surface, z is the layer
};
void read_surface(cudaSurfaceObject_t surface, const ImageFunction& function, void* texel, std::size_t bytes,
                  const SurfacePoint& at, cudaSurfaceBoundaryMode mode);
void write_surface(cudaSurfaceObject_t surface, const ImageFunction& function, const void* texel,
                   std::size_t bytes, const SurfacePoint& at, cudaSurfaceBoundaryMode mode);

template <typename T>
T fetch_texel(cudaTextureObject_t texture, const ImageFunction& function, const TexturePoint& at) {
  constexpr TexelType type = texel_type<T>();
  static_assert(type.components <= 4 && type.bits <= 32, "CUDA has no texture reads of this type");
  const FetchedTexel fetched = read_texture(texture, function, type, at);
  using Component = typename ComponentOf<T>::type;
  Component components[4];
  for (unsigned i = 0; i < type.components; i++)
    std::memcpy(&components[i], &fetched.components[i], sizeof(Component));  // the low bytes of an integer
  T value;
  std::memcpy(&value, components, sizeof(T));
  return value;
}

template <typename T>
T load_texel(cudaSurfaceObject_t surface, const ImageFunction& function, const SurfacePoint& at,
             cudaSurfaceBoundaryMode mode) {
  T value;
  read_surface(surface, function, &value, sizeof(T), at, mode);
  return value;
}
template <typename T>
void store_texel(T value, cudaSurfaceObject_t surface, const ImageFunction& function, const SurfacePoint& at,
                 cudaSurfaceBoundaryMode mode) {
  write_surface(surface, function, &value, sizeof(T), at, mode);
}

}  // namespace emulator

// `parameters` and `point` in brackets, because they contain commas.
#define EMULATOR_UNPACK(...) __VA_ARGS__
#define EMULATOR_TEXTURE(name, function, parameters, point)                                               \
  template <typename T>                                                                                   \
  T name(cudaTextureObject_t texture, EMULATOR_UNPACK parameters) {                                       \
    return emulator::fetch_texel<T>(texture, {#name, EMULATOR_UNPACK function}, EMULATOR_UNPACK point);   \
  }                                                                                                       \
  template <typename T>                                                                                   \
  void name(T* value, cudaTextureObject_t texture, EMULATOR_UNPACK parameters) {                          \
    *value = emulator::fetch_texel<T>(texture, {#name, EMULATOR_UNPACK function}, EMULATOR_UNPACK point); \
  }
EMULATOR_TEXTURE(tex1Dfetch, (1, false, true), (int x), ({.index = x}))
EMULATOR_TEXTURE(tex1D, (1), (float x), ({x}))
EMULATOR_TEXTURE(tex2D, (2), (float x, float y), ({x, y}))
EMULATOR_TEXTURE(tex3D, (3), (float x, float y, float z), ({x, y, z}))
EMULATOR_TEXTURE(tex1DLayered, (1, true), (float x, int layer), ({x, 0, 0, layer}))
EMULATOR_TEXTURE(tex2DLayered, (2, true), (float x, float y, int layer), ({x, y, 0, layer}))
#undef EMULATOR_TEXTURE

#define EMULATOR_SURFACE(name, function, parameters, point)                                                  \
  template <typename T>                                                                                      \
  T name##read(cudaSurfaceObject_t surface, EMULATOR_UNPACK parameters,                                      \
               cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                                        \
    return emulator::load_texel<T>(surface, {#name "read", EMULATOR_UNPACK function}, EMULATOR_UNPACK point, \
                                   mode);                                                                    \
  }                                                                                                          \
  template <typename T>                                                                                      \
  void name##read(T* value, cudaSurfaceObject_t surface, EMULATOR_UNPACK parameters,                         \
                  cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                                     \
    *value = emulator::load_texel<T>(surface, {#name "read", EMULATOR_UNPACK function},                      \
                                     EMULATOR_UNPACK point, mode);                                           \
  }                                                                                                          \
  template <typename T>                                                                                      \
  void name##write(T value, cudaSurfaceObject_t surface, EMULATOR_UNPACK parameters,                         \
                   cudaSurfaceBoundaryMode mode = cudaBoundaryModeTrap) {                                    \
    emulator::store_texel(value, surface, {#name "write", EMULATOR_UNPACK function}, EMULATOR_UNPACK point,  \
                          mode);                                                                             \
  }
EMULATOR_SURFACE(surf1D, (1), (int x), ({x}))
EMULATOR_SURFACE(surf2D, (2), (int x, int y), ({x, y}))
EMULATOR_SURFACE(surf3D, (3), (int x, int y, int z), ({x, y, z}))
EMULATOR_SURFACE(surf1DLayered, (1, true), (int x, int layer), ({x, 0, layer}))
EMULATOR_SURFACE(surf2DLayered, (2, true), (int x, int y, int layer), ({x, y, layer}))
#undef EMULATOR_SURFACE
#undef EMULATOR_UNPACK
EMULATOR_END
