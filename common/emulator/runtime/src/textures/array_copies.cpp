// Copies to, from and between CUDA arrays.
#include "../report/call.h"
#include "arrays.h"

namespace emulator {
namespace {

struct ArrayPart {
  const cudaArray* array;
  std::size_t x, y;  // bytes and rows
};

cudaError_t copy_to_array(const ArrayPart& to, const Rows& from, cudaMemcpyKind kind,
                          const cudaStream_t* stream, int from_argument) {
  Rows rows{};
  if (const cudaError_t error = rows_in_array(to.array, {to.x, to.y, 0}, {from.width, from.height, 1}, rows))
    return error;
  return copy_rows(rows, from, kind, stream, from_argument);
}

cudaError_t copy_from_array(const Rows& to, const ArrayPart& from, cudaMemcpyKind kind,
                            const cudaStream_t* stream) {
  Rows rows{};
  if (const cudaError_t error =
          rows_in_array(from.array, {from.x, from.y, 0}, {to.width, to.height, 1}, rows))
    return error;
  return copy_rows(to, rows, kind, stream, 2);
}

// Bytes that may continue with the next row.
cudaError_t run_in_array(const ArrayPart& part, std::size_t bytes, Rows& rows) {
  if (const cudaError_t error = rows_in_array(part.array, {part.x, part.y, 0}, {0, 1, 1}, rows)) return error;
  return rows = one_row(rows.begin, bytes), cudaSuccess;
}

cudaError_t copy_run_to_array(const ArrayPart& to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                              const cudaStream_t* stream) {
  Rows rows{};
  if (const cudaError_t error = run_in_array(to, bytes, rows)) return error;
  return copy_rows(rows, one_row(from, bytes), kind, stream, 3);
}

cudaError_t copy_run_from_array(void* to, const ArrayPart& from, std::size_t bytes, cudaMemcpyKind kind,
                                const cudaStream_t* stream) {
  Rows rows{};
  if (const cudaError_t error = run_in_array(from, bytes, rows)) return error;
  return copy_rows(one_row(to, bytes), rows, kind, stream, 1);
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaMemcpy2DToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                std::size_t from_pitch, std::size_t width, std::size_t height,
                                cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpy2DToArray", where);
  return copy_to_array({to, x, y}, {from, from_pitch, width, height}, kind, nullptr, 3);
}
cudaError_t cudaMemcpy2DToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                     std::size_t from_pitch, std::size_t width, std::size_t height,
                                     cudaMemcpyKind kind, cudaStream_t stream, Position where) {
  const Call call("cudaMemcpy2DToArrayAsync", where);
  return copy_to_array({to, x, y}, {from, from_pitch, width, height}, kind, &stream, 3);
}
cudaError_t cudaMemcpy2DFromArray(void* to, std::size_t to_pitch, cudaArray_const_t from, std::size_t x,
                                  std::size_t y, std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                  Position where) {
  const Call call("cudaMemcpy2DFromArray", where);
  return copy_from_array({to, to_pitch, width, height}, {from, x, y}, kind, nullptr);
}
cudaError_t cudaMemcpy2DFromArrayAsync(void* to, std::size_t to_pitch, cudaArray_const_t from, std::size_t x,
                                       std::size_t y, std::size_t width, std::size_t height,
                                       cudaMemcpyKind kind, cudaStream_t stream, Position where) {
  const Call call("cudaMemcpy2DFromArrayAsync", where);
  return copy_from_array({to, to_pitch, width, height}, {from, x, y}, kind, &stream);
}
cudaError_t cudaMemcpy2DArrayToArray(cudaArray_t to, std::size_t to_x, std::size_t to_y,
                                     cudaArray_const_t from, std::size_t from_x, std::size_t from_y,
                                     std::size_t width, std::size_t height, cudaMemcpyKind kind,
                                     Position where) {
  const Call call("cudaMemcpy2DArrayToArray", where);
  Rows rows{};
  if (const cudaError_t error = rows_in_array(from, {from_x, from_y, 0}, {width, height, 1}, rows))
    return error;
  return copy_to_array({to, to_x, to_y}, rows, kind, nullptr, 3);
}
cudaError_t cudaMemcpyToArray(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                              std::size_t bytes, cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpyToArray", where);
  return copy_run_to_array({to, x, y}, from, bytes, kind, nullptr);
}
cudaError_t cudaMemcpyToArrayAsync(cudaArray_t to, std::size_t x, std::size_t y, const void* from,
                                   std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                                   Position where) {
  const Call call("cudaMemcpyToArrayAsync", where);
  return copy_run_to_array({to, x, y}, from, bytes, kind, &stream);
}
cudaError_t cudaMemcpyFromArray(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                std::size_t bytes, cudaMemcpyKind kind, Position where) {
  const Call call("cudaMemcpyFromArray", where);
  return copy_run_from_array(to, {from, x, y}, bytes, kind, nullptr);
}
cudaError_t cudaMemcpyFromArrayAsync(void* to, cudaArray_const_t from, std::size_t x, std::size_t y,
                                     std::size_t bytes, cudaMemcpyKind kind, cudaStream_t stream,
                                     Position where) {
  const Call call("cudaMemcpyFromArrayAsync", where);
  return copy_run_from_array(to, {from, x, y}, bytes, kind, &stream);
}
