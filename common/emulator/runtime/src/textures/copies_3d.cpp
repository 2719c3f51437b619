// cudaMemcpy3D, cudaMemset3D, and copies between devices.
#include "../api/memory/copies.h"
#include "../memory/devices.h"
#include "../report/call.h"
#include "arrays.h"

namespace emulator {
namespace {

Rows box_of(const cudaPitchedPtr& memory, const cudaPos& at, const cudaExtent& extent) {
  const Rows all{memory.ptr,  memory.pitch, extent.width, extent.height, memory.pitch * memory.ysize,
                 extent.depth};
  Rows box = all;
  if (memory.ptr)
    box.begin = static_cast<std::byte*>(memory.ptr) + at.z * all.slice_pitch + at.y * all.pitch + at.x;
  return box;
}

// Whether a box fits into a row and a slice of its memory. What is beyond the last slice, `check_side` finds.
bool fits(const cudaPitchedPtr& memory, const cudaPos& at, const cudaExtent& extent) {
  const bool has_slices = extent.depth + at.z > 1;
  return at.x + extent.width <= memory.pitch && (!has_slices || at.y + extent.height <= memory.ysize);
}

// One side of a copy: positions in an array are elements, positions in other memory bytes.
cudaError_t side_box(const cudaArray* array, const cudaPitchedPtr& memory, cudaPos at,
                     const cudaExtent& extent, Rows& box) {
  if (array) {
    at.x *= image_of(*array).texel_bytes();
    return rows_in_array(array, at, extent, box);
  }
  if (!fits(memory, at, extent)) return fail(cudaErrorInvalidValue);
  return box = box_of(memory, at, extent), cudaSuccess;
}

}  // namespace

cudaError_t boxes_of(const cudaMemcpy3DParms* copy, Rows& to, Rows& from) {
  if (!copy || (copy->srcArray && copy->srcPtr.ptr) || (copy->dstArray && copy->dstPtr.ptr))
    return fail(cudaErrorInvalidValue);
  cudaExtent extent = copy->extent;
  for (const cudaArray_t array : {copy->srcArray, copy->dstArray}) {
    if (!array) continue;
    if (const cudaError_t error = check_array(array)) return error;
    extent.width = copy->extent.width * image_of(*array).texel_bytes();
  }
  if (const cudaError_t error = side_box(copy->dstArray, copy->dstPtr, copy->dstPos, extent, to))
    return error;
  return side_box(copy->srcArray, copy->srcPtr, copy->srcPos, extent, from);
}

namespace {

cudaError_t copy_box(const cudaMemcpy3DParms* copy, const cudaStream_t* stream) {
  Rows to{}, from{};
  if (const cudaError_t error = boxes_of(copy, to, from)) return error;
  return copy_rows(to, from, copy->kind, stream, kNoArgument);
}

cudaError_t set_box(const cudaPitchedPtr& memory, int value, const cudaExtent& extent,
                    const cudaStream_t* stream) {
  if (!fits(memory, {}, extent)) return fail(cudaErrorInvalidValue);
  return set_rows(box_of(memory, {}, extent), value, stream);
}

cudaError_t copy_between(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                         const cudaStream_t* stream) {
  if (check_device(to_device) || check_device(from_device)) return cudaErrorInvalidDevice;
  return copy_rows(one_row(to, bytes), one_row(from, bytes), cudaMemcpyDeviceToDevice, stream, 2);
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemcpy3D(const cudaMemcpy3DParms* copy, Position where) {
  const Call call("cudaMemcpy3D", where);
  return copy_box(copy, nullptr);
}
cudaError_t cudaMemcpy3DAsync(const cudaMemcpy3DParms* copy, cudaStream_t stream, Position where) {
  const Call call("cudaMemcpy3DAsync", where);
  return copy_box(copy, &stream);
}
cudaError_t cudaMemset3D(cudaPitchedPtr memory, int value, cudaExtent extent, Position where) {
  const Call call("cudaMemset3D", where);
  return set_box(memory, value, extent, nullptr);
}
cudaError_t cudaMemset3DAsync(cudaPitchedPtr memory, int value, cudaExtent extent, cudaStream_t stream,
                              Position where) {
  const Call call("cudaMemset3DAsync", where);
  return set_box(memory, value, extent, &stream);
}
cudaError_t cudaMemcpyPeer(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                           Position where) {
  const Call call("cudaMemcpyPeer", where);
  return copy_between(to, to_device, from, from_device, bytes, nullptr);
}
cudaError_t cudaMemcpyPeerAsync(void* to, int to_device, const void* from, int from_device, std::size_t bytes,
                                cudaStream_t stream, Position where) {
  const Call call("cudaMemcpyPeerAsync", where);
  return copy_between(to, to_device, from, from_device, bytes, &stream);
}
