// CUDA's runtime API for arrays, texture objects and surface objects.
#pragma once

#include <cstddef>
#include <type_traits>

#include "emulator/runtime_api.h"

namespace emulator {

// The type of a texel, or of one of its components.
struct TexelType {
  cudaChannelFormatKind kind;
  unsigned bits, components;  // bits of each component
};

template <typename T>
struct ComponentOf {
  using type = T;
};
template <typename T>
requires requires(T vector) {
  vector.x;
}
struct ComponentOf<T> {
  using type = decltype(T::x);
};

template <typename T>
constexpr TexelType texel_type() {
  using Component = typename ComponentOf<T>::type;
  const auto kind = std::is_floating_point_v<Component> ? cudaChannelFormatKindFloat
                    : std::is_signed_v<Component>       ? cudaChannelFormatKindSigned
                                                        : cudaChannelFormatKindUnsigned;
  return {kind, 8 * unsigned(sizeof(Component)), unsigned(sizeof(T) / sizeof(Component))};
}

}  // namespace emulator

EMULATOR_BEGIN
inline cudaChannelFormatDesc cudaCreateChannelDesc(int x, int y, int z, int w, cudaChannelFormatKind kind) {
  return {x, y, z, w, kind};
}
template <typename T>
cudaChannelFormatDesc cudaCreateChannelDesc() {
  constexpr emulator::TexelType type = emulator::texel_type<T>();
  static_assert(type.components == 1 || type.components == 2 || type.components == 4);
  constexpr int bits = int(type.bits);
  return {bits, type.components > 1 ? bits : 0, type.components > 2 ? bits : 0,
          type.components > 2 ? bits : 0, type.kind};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf() { return {16, 0, 0, 0, cudaChannelFormatKindFloat}; }
inline cudaChannelFormatDesc cudaCreateChannelDescHalf2() {
  return {16, 16, 0, 0, cudaChannelFormatKindFloat};
}
inline cudaChannelFormatDesc cudaCreateChannelDescHalf4() {
  return {16, 16, 16, 16, cudaChannelFormatKindFloat};
}

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, std::size_t width,
                            std::size_t height = 0, unsigned int flags = 0, EMULATOR_HERE);
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned int flags = 0, EMULATOR_HERE);
cudaError_t cudaFreeArray(cudaArray_t array, EMULATOR_HERE);
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array, EMULATOR_HERE);
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array, EMULATOR_HERE);

// `x` and `width` are bytes.
cudaError_t cudaMemcpy2DToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                std::size_t from_pitch, std::size_t width, std::size_t height,
                                cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t from_pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t to_pitch, cudaArray_const_t from, std::size_t x,
                                  std::size_t y, std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                  EMULATOR_HERE);
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, std::size_t to_pitch, cudaArray_const_t from, std::size_t x,
                                       std::size_t y, std::size_t width, std::size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream = nullptr, EMULATOR_HERE);
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                     cudaArray_const_t from, std::size_t from_x, std::size_t from_y,
                                     std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind = cudaMemcpyDeviceToDevice, EMULATOR_HERE);
// These are deprecated. They continue with the next row.
cudaError_t cudaMemcpyToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                   std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                   EMULATOR_HERE);
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                     std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream = nullptr,
                                     EMULATOR_HERE);

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* sampling, const cudaResourceViewDesc* view,
                                    EMULATOR_HERE);
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture, EMULATOR_HERE);
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture,
                                             EMULATOR_HERE);
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* sampling, cudaTextureObject_t texture,
                                            EMULATOR_HERE);
cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource,
                                    EMULATOR_HERE);
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface, EMULATOR_HERE);
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface,
                                             EMULATOR_HERE);
EMULATOR_END
