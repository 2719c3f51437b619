// The objects of a program: created and destroyed by the host, checked where kernels use them.
#include "image_objects.h"

#include <deque>

#include "../accesses/accesses.h"
#include "../races/shadow_events.h"
#include "../report/call.h"
#include "../report/report.h"
#include "../scheduler/cores.h"
#include "../scheduler/scheduler.h"
#include "arrays.h"

namespace emulator {
namespace {

constexpr unsigned long long kFirstHandle = 1ull << 32;  // an index or a size is no handle

std::deque<ImageObject>& image_objects() {
  static auto& all = *new std::deque<ImageObject>;  // outlives every static object
  return all;
}

ImageObject* find_object(unsigned long long handle) {
  const auto number = handle - kFirstHandle;
  return handle >= kFirstHandle && number < image_objects().size() ? &image_objects()[number] : nullptr;
}

std::string after_destruction(const ImageObject& object) {
  return " after it was destroyed in " + line_at(object.destroyed_where);
}

cudaError_t refuse(const char* problem, const std::string& what, const std::string& detail,
                   cudaError_t error) {
  add_call_finding(Check::launch, problem, nullptr, std::string(Call::under_way()->name) + what, detail);
  return fail(error);
}

cudaError_t check_linear(const void* memory, std::size_t bytes, const cudaChannelFormatDesc& format) {
  if (!is_valid(format)) return fail(cudaErrorInvalidChannelDescriptor);
  const Side side = side_of(one_row(memory, bytes), -1, "the memory of the texture");
  if (const cudaError_t error = check_side(side, true)) return error;
  const std::size_t alignment = device().textureAlignment;
  if (!collect_until_exit || reinterpret_cast<std::uintptr_t>(memory) % alignment == 0) return cudaSuccess;
  return refuse("misaligned texture", " is given memory at a misaligned address",
                "the memory of a texture must begin at a multiple of " + std::to_string(alignment) +
                    " bytes (textureAlignment): use a pointer that cudaMalloc returned",
                cudaErrorInvalidValue);
}

cudaError_t read_resource(const cudaResourceDesc& resource, Image& image) {
  if (resource.resType == cudaResourceTypeArray) {
    if (const cudaError_t error = check_array(resource.res.array.array)) return error;
    return image = image_of(*resource.res.array.array), cudaSuccess;
  }
  if (resource.resType == cudaResourceTypeLinear) {
    const auto& linear = resource.res.linear;
    if (const cudaError_t error = check_linear(linear.devPtr, linear.sizeInBytes, linear.desc)) return error;
    image.type = type_of(linear.desc);
    image.is_linear = true;
    image.begin = static_cast<const std::byte*>(linear.devPtr);
    image.width = linear.sizeInBytes / image.texel_bytes();
    image.pitch = linear.sizeInBytes;
    return cudaSuccess;
  }
  if (resource.resType != cudaResourceTypePitch2D)
    return refuse("mipmap", " is given a mipmapped array, which the emulator does not support", "",
                  cudaErrorNotSupported);
  const auto& pitched = resource.res.pitch2D;
  image.type = type_of(pitched.desc);
  image.begin = static_cast<const std::byte*>(pitched.devPtr);
  image.dimensions = 2;
  image.width = pitched.width;
  image.height = pitched.height;
  image.pitch = pitched.pitchInBytes;
  const std::size_t row = image.width * image.texel_bytes(), alignment = device().texturePitchAlignment;
  if (!image.width || !image.height || image.pitch < row) return fail(cudaErrorInvalidValue);
  if (image.pitch % alignment)
    return refuse("misaligned pitch", " is given a pitch of " + std::to_string(image.pitch) + " bytes",
                  "the pitch of a texture must be a multiple of " + std::to_string(alignment) +
                      " bytes (texturePitchAlignment): use that of cudaMallocPitch",
                  cudaErrorInvalidValue);
  return check_linear(pitched.devPtr, image.pitch * (image.height - 1) + row, pitched.desc);
}

bool reads_floats(const Image& image, const cudaTextureDesc& sampling) {
  return image.type.kind == cudaChannelFormatKindFloat ||
         (sampling.readMode == cudaReadModeNormalizedFloat && image.type.bits < 32);
}

cudaError_t check_sampling(const Image& image, const cudaTextureDesc& sampling) {
  if (sampling.sRGB)
    return refuse("sRGB", " asks for sRGB, which the emulator does not support", "", cudaErrorNotSupported);
  if (sampling.filterMode == cudaFilterModeLinear && !image.is_linear && !reads_floats(image, sampling))
    return refuse("filter of integers",
                  " asks for linear filtering of a texture that returns " + text_of(image.type),
                  "only textures that return floats can be filtered: set readMode to "
                  "cudaReadModeNormalizedFloat, or filterMode to cudaFilterModePoint",
                  cudaErrorInvalidFilterSetting);
  return cudaSuccess;
}

cudaError_t new_object(ImageObject object, unsigned long long* handle) {
  const Call& call = *Call::under_way();
  object.name = argument_text(call.name, call.where, 0);
  if (object.name.empty()) object.name = object.is_surface ? "a surface" : "a texture";
  image_objects().push_back(std::move(object));
  return *handle = kFirstHandle + image_objects().size() - 1, cudaSuccess;
}

// For the current call of the host.
cudaError_t find_for_host(unsigned long long handle, bool is_surface, ImageObject*& object) {
  object = find_object(handle);
  if (object && object->is_surface == is_surface && !object->is_destroyed) return cudaSuccess;
  const std::string kind = is_surface ? "surface object" : "texture object";
  const std::string given = " is given ";
  if (!object || object->is_surface != is_surface)
    return refuse("no object", given + "something that is not a " + kind, "", cudaErrorInvalidValue);
  return refuse("destroyed object", given + object->name + after_destruction(*object), "",
                cudaErrorInvalidValue);
}

cudaError_t destroy(unsigned long long handle, bool is_surface) {
  if (!handle) return cudaSuccess;
  ImageObject* object = nullptr;
  if (const cudaError_t error = find_for_host(handle, is_surface, object)) return error;
  object->is_destroyed = true;
  object->destroyed_where = Call::under_way()->where;
  return cudaSuccess;
}

std::string signature_text(const ImageFunction& function) {
  if (function.is_linear) return "linear memory";
  Image image;
  image.dimensions = function.dimensions;
  image.is_layered = function.is_layered;
  return kind_text(image);
}

bool accepts(const ImageFunction& function, const Image& image) {
  if (function.is_linear || image.is_linear) return function.is_linear && image.is_linear;
  return function.dimensions == image.dimensions && function.is_layered == image.is_layered;
}

}  // namespace

void report_use(const ImageObject& object, const char* problem, std::string what, std::string detail,
                bool is_warning, const void* pc) {
  take_turn();
  const Cause cause{Check::memory, problem, pc, &object};
  if (is_on(Check::memory) && is_new(cause)) add(cause, {is_warning, std::move(what), "", std::move(detail)});
  if (!is_warning) end_thread();
}

const ImageObject& image_object(unsigned long long handle, bool is_surface, const ImageFunction& function,
                                const void* pc) {
  static const ImageObject none;
  const std::string name = function.name;
  const ImageObject* object = find_object(handle);
  if (!object)
    report_use(none, "no object",
               name + " is given something that is not a " + (is_surface ? "surface" : "texture") + " object",
               "was it never created, or did its creation fail?", false, pc);
  if (object->is_destroyed)
    report_use(*object, "destroyed object", name + " uses " + object->name + after_destruction(*object),
               "the host must wait for the kernel before it destroys the " + object->kind(), false, pc);
  if (object->is_surface != is_surface)
    report_use(*object, "other object", name + " is given " + object->name + ", which is a " + object->kind(),
               "", false, pc);
  if (!accepts(function, object->image))
    report_use(*object, "other dimensions",
               name + " is given " + object->name + ", which is " + kind_text(object->image),
               "it accepts only " + signature_text(function), false, pc);
  return *object;
}

void check_texel_read(const ImageObject& object, const std::byte* texel, std::size_t bytes,
                      const ImageFunction& function, const void* pc) {
  if (!running.observes_accesses) return;
  const Allocation* allocation = find_allocation(texel);
  if (!allocation || !is_on(Check::races) || !is_written_in_launch(*allocation, texel, bytes))
    return on_access(const_cast<std::byte*>(texel), bytes, false, AccessKind::plain, pc);
  const Cause cause{Check::races, "texture of written memory", pc, &object};
  if (is_new(cause))
    add(cause, {false,
                std::string(function.name) + " reads " + element_of(*allocation, texel, bytes) + " of " +
                    name_of(*allocation) + ", which this launch has written",
                "",
                "such a read returns undefined data, after a barrier too: textures and surfaces are read "
                "through a cache that does not see writes of the same launch"});
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaCreateTextureObject(cudaTextureObject_t* texture, const cudaResourceDesc* resource,
                                    const cudaTextureDesc* sampling, const cudaResourceViewDesc* view,
                                    Position where) {
  const Call call("cudaCreateTextureObject", where);
  if (!texture || !resource || !sampling) return fail(cudaErrorInvalidValue);
  if (view)
    return refuse("view", " is given a resource view, which the emulator does not support", "",
                  cudaErrorNotSupported);
  ImageObject object;
  object.resource = *resource;
  object.sampling = *sampling;
  if (const cudaError_t error = read_resource(*resource, object.image)) return error;
  if (const cudaError_t error = check_sampling(object.image, *sampling)) return error;
  return new_object(std::move(object), texture);
}
cudaError_t cudaDestroyTextureObject(cudaTextureObject_t texture, Position where) {
  const Call call("cudaDestroyTextureObject", where);
  return destroy(texture, false);
}
cudaError_t cudaGetTextureObjectResourceDesc(cudaResourceDesc* resource, cudaTextureObject_t texture,
                                             Position where) {
  const Call call("cudaGetTextureObjectResourceDesc", where);
  ImageObject* object = nullptr;
  if (const cudaError_t error = find_for_host(texture, false, object)) return error;
  return *resource = object->resource, cudaSuccess;
}
cudaError_t cudaGetTextureObjectTextureDesc(cudaTextureDesc* sampling, cudaTextureObject_t texture,
                                            Position where) {
  const Call call("cudaGetTextureObjectTextureDesc", where);
  ImageObject* object = nullptr;
  if (const cudaError_t error = find_for_host(texture, false, object)) return error;
  return *sampling = object->sampling, cudaSuccess;
}

cudaError_t cudaCreateSurfaceObject(cudaSurfaceObject_t* surface, const cudaResourceDesc* resource,
                                    Position where) {
  const Call call("cudaCreateSurfaceObject", where);
  if (!surface || !resource || resource->resType != cudaResourceTypeArray) return fail(cudaErrorInvalidValue);
  ImageObject object;
  object.is_surface = true;
  object.resource = *resource;
  if (const cudaError_t error = read_resource(*resource, object.image)) return error;
  const cudaArray& array = *resource->res.array.array;
  if (!(array.flags & cudaArraySurfaceLoadStore))
    return refuse("array without surfaces",
                  " is given " + find_allocation(array.begin)->name +
                      ", which was not allocated with cudaArraySurfaceLoadStore",
                  "", cudaErrorInvalidValue);
  return new_object(std::move(object), surface);
}
cudaError_t cudaDestroySurfaceObject(cudaSurfaceObject_t surface, Position where) {
  const Call call("cudaDestroySurfaceObject", where);
  return destroy(surface, true);
}
cudaError_t cudaGetSurfaceObjectResourceDesc(cudaResourceDesc* resource, cudaSurfaceObject_t surface,
                                             Position where) {
  const Call call("cudaGetSurfaceObjectResourceDesc", where);
  ImageObject* object = nullptr;
  if (const cudaError_t error = find_for_host(surface, true, object)) return error;
  return *resource = object->resource, cudaSuccess;
}
