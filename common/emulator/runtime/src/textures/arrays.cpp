// cudaMallocArray and related functions. An array is uninitialised memory, whose layout programs do not see.
#include "arrays.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "../api/memory/allocation_calls.h"
#include "../report/call.h"

namespace emulator {
namespace {

constexpr unsigned kSupportedFlags = cudaArrayLayered | cudaArraySurfaceLoadStore | cudaArrayTextureGather;

std::vector<std::unique_ptr<cudaArray>>& cuda_arrays() {
  static auto& all = *new std::vector<std::unique_ptr<cudaArray>>;  // outlives every static object
  return all;
}

bool is_array(const cudaArray* array) {
  return std::any_of(cuda_arrays().begin(), cuda_arrays().end(),
                     [=](const auto& one) { return one.get() == array; });
}

// Whether a number of elements is more than a device allows in one direction; 0 where there is none.
bool is_too_large(const Image& image, const cudaExtent& extent) {
  const cudaDeviceProp d = device();
  if (image.is_layered) {
    const int layers = image.dimensions == 1 ? d.maxTexture1DLayered[1] : d.maxTexture2DLayered[2];
    const int width = image.dimensions == 1 ? d.maxTexture1DLayered[0] : d.maxTexture2DLayered[0];
    return extent.depth > std::size_t(layers) || extent.width > std::size_t(width) ||
           extent.height > std::size_t(d.maxTexture2DLayered[1]);
  }
  if (image.dimensions == 1) return extent.width > std::size_t(d.maxTexture1D);
  if (image.dimensions == 2)
    return extent.width > std::size_t(d.maxTexture2D[0]) || extent.height > std::size_t(d.maxTexture2D[1]);
  return extent.width > std::size_t(d.maxTexture3D[0]) || extent.height > std::size_t(d.maxTexture3D[1]) ||
         extent.depth > std::size_t(d.maxTexture3D[2]);
}

// The view by which reports name elements: [z, y, x].
View view_of(const Image& image, const std::string& name) {
  View view;
  view.name = name;
  view.type = text_of(image.type);
  view.begin = image.begin;
  view.element = image.texel_bytes();
  const auto row = std::int64_t(image.width), slice = row * std::int64_t(image.height);
  if (image.dimensions == 3 || image.is_layered) {
    view.sizes.push_back(std::int64_t(image.depth));
    view.strides.push_back(slice);
  }
  if (image.dimensions > 1) {
    view.sizes.push_back(std::int64_t(image.height));
    view.strides.push_back(row);
  }
  view.sizes.push_back(row);
  view.strides.push_back(1);
  return view;
}

cudaError_t allocate_array(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                           unsigned int flags) {
  if (!array || !format || extent.width == 0) return fail(cudaErrorInvalidValue);
  if (flags & ~kSupportedFlags) {
    add_call_finding(Check::launch, "array flags", nullptr,
                     std::string(Call::under_way()->name) + " has flags that the emulator does not support",
                     "it supports cudaArrayDefault, cudaArrayLayered and cudaArraySurfaceLoadStore");
    return fail(cudaErrorNotSupported);
  }
  const bool is_layered = flags & cudaArrayLayered;
  if (!is_valid(*format)) return fail(cudaErrorInvalidChannelDescriptor);
  if (is_layered ? extent.depth == 0 : extent.depth && !extent.height) return fail(cudaErrorInvalidValue);
  auto made = std::make_unique<cudaArray>(cudaArray{*format, extent, flags, nullptr});
  const Image image = image_of(*made);
  if (is_too_large(image, extent)) return fail(cudaErrorInvalidValue);
  void* memory = nullptr;
  if (const cudaError_t error = allocate(&memory, image.pitch * image.height * image.depth, Space::array))
    return error;
  made->begin = static_cast<std::byte*>(memory);
  Allocation& allocation = *find_allocation(memory);
  allocation.views = {view_of(image_of(*made), allocation.name)};
  *array = made.get();
  cuda_arrays().push_back(std::move(made));
  return cudaSuccess;
}

}  // namespace

cudaError_t check_array(const cudaArray* array) {
  const std::string call = Call::under_way()->name;
  if (!is_array(array)) {
    add_call_finding(Check::memory, "no array", array,
                     call + " is given an array that cudaMallocArray or cudaMalloc3DArray did not return",
                     "");
    return fail(cudaErrorInvalidResourceHandle);
  }
  const Allocation& memory = *find_allocation(array->begin);
  if (!memory.freed) return cudaSuccess;
  add_call_finding(
      Check::memory, "after free", array,
      call + " is given " + memory.name + " after it was freed in " + line_at(memory.freed_where), "");
  return fail(cudaErrorInvalidResourceHandle);
}

cudaError_t rows_in_array(const cudaArray* array, cudaPos at, cudaExtent extent, Rows& rows) {
  if (const cudaError_t error = check_array(array)) return error;
  const Image image = image_of(*array);
  const bool fits = at.x + extent.width <= image.pitch && at.y + extent.height <= image.height &&
                    at.z + extent.depth <= image.depth;
  if (!fits) {
    const auto box = [](std::size_t width, std::size_t height, std::size_t depth) {
      return std::to_string(height * depth) + (height * depth == 1 ? " row of " : " rows of ") +
             std::to_string(width) + " bytes";
    };
    const std::string place = at.x || at.y || at.z
                                  ? ", beginning at byte " + std::to_string(at.x) + " of row " +
                                        std::to_string(at.y + at.z * image.height)
                                  : "";
    add_call_finding(Check::memory, "outside of an array", array,
                     std::string(Call::under_way()->name) + " copies " +
                         box(extent.width, extent.height, extent.depth) + place + ", but " +
                         find_allocation(array->begin)->name + " has " +
                         box(image.pitch, image.height, image.depth),
                     "x and width are bytes, except for cudaMemcpy3D, which counts elements");
    return fail(cudaErrorInvalidValue);
  }
  const std::byte* begin = image.begin + (at.z * image.height + at.y) * image.pitch + at.x;
  rows = {begin, image.pitch, extent.width, extent.height, image.pitch * image.height, extent.depth};
  return cudaSuccess;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaMallocArray(cudaArray_t* array, const cudaChannelFormatDesc* format, std::size_t width,
                            std::size_t height, unsigned int flags, Position where) {
  const Call call("cudaMallocArray", where);
  if (flags & cudaArrayLayered) return fail(cudaErrorInvalidValue);
  return allocate_array(array, format, {width, height, 0}, flags);
}
cudaError_t cudaMalloc3DArray(cudaArray_t* array, const cudaChannelFormatDesc* format, cudaExtent extent,
                              unsigned int flags, Position where) {
  const Call call("cudaMalloc3DArray", where);
  return allocate_array(array, format, extent, flags);
}
cudaError_t cudaFreeArray(cudaArray_t array, Position where) {
  const Call call("cudaFreeArray", where);
  if (!array) return cudaSuccess;
  return free_array_memory(is_array(array) ? static_cast<void*>(array->begin) : array);
}
cudaError_t cudaArrayGetInfo(cudaChannelFormatDesc* format, cudaExtent* extent, unsigned int* flags,
                             cudaArray_t array, Position where) {
  const Call call("cudaArrayGetInfo", where);
  if (const cudaError_t error = check_array(array)) return error;
  if (format) *format = array->format;
  if (extent) *extent = array->extent;
  if (flags) *flags = array->flags;
  return cudaSuccess;
}
cudaError_t cudaGetChannelDesc(cudaChannelFormatDesc* format, cudaArray_const_t array, Position where) {
  const Call call("cudaGetChannelDesc", where);
  if (const cudaError_t error = check_array(array)) return error;
  if (!format) return fail(cudaErrorInvalidValue);
  return *format = array->format, cudaSuccess;
}
