// cuBLAS: handles, their modes, status codes, and copies of vectors and matrices.
#include "handle.h"

#include <algorithm>
#include <vector>

#include "../../../runtime/src/api/memory/copies.h"

namespace emulator::cublas {
namespace {

std::vector<cublasHandle_t>& handles() {
  static auto& all = *new std::vector<cublasHandle_t>;
  return all;
}

// A copy of the current call; `stream` is null if the host waits for it.
cublasStatus_t copy(const void* to, int to_step, const void* from, int from_step, int element, int rows,
                    int columns, cudaMemcpyKind kind, const cudaStream_t* stream) {
  if (rows < 0 || columns < 0 || element <= 0 || to_step < std::max(1, rows) || from_step < std::max(1, rows))
    return CUBLAS_STATUS_INVALID_VALUE;
  const auto region = [&](const void* begin, int step) {
    return Rows{begin, std::size_t(step) * element, std::size_t(rows) * element, std::size_t(columns)};
  };
  const cudaError_t error =
      copy_rows(region(to, to_step), region(from, from_step), kind, stream, kNoArgument);
  return error ? CUBLAS_STATUS_MAPPING_ERROR : CUBLAS_STATUS_SUCCESS;
}

// A vector with steps is a matrix with one row; one without is a column.
cublasStatus_t copy_vector(const void* to, int to_step, const void* from, int from_step, int element,
                           int count, cudaMemcpyKind kind, const cudaStream_t* stream) {
  if (to_step == 1 && from_step == 1)
    return copy(to, std::max(1, count), from, std::max(1, count), element, count, 1, kind, stream);
  return copy(to, to_step, from, from_step, element, 1, count, kind, stream);
}

}  // namespace

bool is_handle(cublasHandle_t handle) {
  return std::find(handles().begin(), handles().end(), handle) != handles().end();
}

}  // namespace emulator::cublas

using namespace emulator;
using namespace emulator::cublas;

cublasStatus_t cublasCreate(cublasHandle_t* handle) {
  if (!handle) return CUBLAS_STATUS_INVALID_VALUE;
  handles().push_back(*handle = new cublasContext);
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle, Position where) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const Call call("cublasDestroy", where);
  finish_all();
  std::erase(handles(), handle);
  delete handle;
  return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasGetVersion(cublasHandle_t, int* version) {
  return version ? (*version = CUBLAS_VERSION, CUBLAS_STATUS_SUCCESS) : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasGetProperty(libraryPropertyType property, int* value) {
  static constexpr int parts[] = {CUBLAS_VER_MAJOR, CUBLAS_VER_MINOR, CUBLAS_VER_PATCH};
  if (!value || property < 0 || property > 2) return CUBLAS_STATUS_INVALID_VALUE;
  return *value = parts[property], CUBLAS_STATUS_SUCCESS;
}

// Each status, its number and its text.
#define EMULATOR_CUBLAS_STATUSES(X)                                                                       \
  X(CUBLAS_STATUS_SUCCESS, "success")                                                                     \
  X(CUBLAS_STATUS_NOT_INITIALIZED, "the library was not initialized")                                     \
  X(CUBLAS_STATUS_ALLOC_FAILED, "the resource allocation failed")                                         \
  X(CUBLAS_STATUS_INVALID_VALUE, "an unsupported value or parameter was passed to the function")          \
  X(CUBLAS_STATUS_ARCH_MISMATCH, "the function requires an architectural feature absent from the device") \
  X(CUBLAS_STATUS_MAPPING_ERROR, "an access to GPU memory space failed")                                  \
  X(CUBLAS_STATUS_EXECUTION_FAILED, "the function failed to launch on the GPU")                           \
  X(CUBLAS_STATUS_INTERNAL_ERROR, "an internal operation failed")                                         \
  X(CUBLAS_STATUS_NOT_SUPPORTED, "the functionality requested is not supported")                          \
  X(CUBLAS_STATUS_LICENSE_ERROR, "the functionality requested requires a license")

const char* cublasGetStatusName(cublasStatus_t status) {
  switch (status) {
#define EMULATOR_NAME_OF(name, text) \
  case name:                         \
    return #name;
    EMULATOR_CUBLAS_STATUSES(EMULATOR_NAME_OF)
  }
  return "<unknown>";
}

const char* cublasGetStatusString(cublasStatus_t status) {
  switch (status) {
#define EMULATOR_TEXT_OF(name, text) \
  case name:                         \
    return text;
    EMULATOR_CUBLAS_STATUSES(EMULATOR_TEXT_OF)
  }
  return "<unknown>";
}

#define EMULATOR_CUBLAS_MODE(Name, Type, member)                       \
  cublasStatus_t cublasSet##Name(cublasHandle_t handle, Type value) {  \
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;      \
    return handle->member = value, CUBLAS_STATUS_SUCCESS;              \
  }                                                                    \
  cublasStatus_t cublasGet##Name(cublasHandle_t handle, Type* value) { \
    if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;      \
    if (!value) return CUBLAS_STATUS_INVALID_VALUE;                    \
    return *value = handle->member, CUBLAS_STATUS_SUCCESS;             \
  }
EMULATOR_CUBLAS_MODE(Stream, cudaStream_t, stream)
EMULATOR_CUBLAS_MODE(PointerMode, cublasPointerMode_t, pointer_mode)
EMULATOR_CUBLAS_MODE(MathMode, cublasMath_t, math_mode)
EMULATOR_CUBLAS_MODE(AtomicsMode, cublasAtomicsMode_t, atomics_mode)

cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void*, std::size_t) {
  return is_handle(handle) ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_NOT_INITIALIZED;
}

#define EMULATOR_CUBLAS_COPY(Name, kind)                                                                   \
  cublasStatus_t cublas##Name##Vector(int count, int element, const void* from, int from_step, void* to,   \
                                      int to_step, Position where) {                                       \
    const Call call("cublas" #Name "Vector", where);                                                       \
    return copy_vector(to, to_step, from, from_step, element, count, kind, nullptr);                       \
  }                                                                                                        \
  cublasStatus_t cublas##Name##VectorAsync(int count, int element, const void* from, int from_step,        \
                                           void* to, int to_step, cudaStream_t stream, Position where) {   \
    const Call call("cublas" #Name "VectorAsync", where);                                                  \
    return copy_vector(to, to_step, from, from_step, element, count, kind, &stream);                       \
  }                                                                                                        \
  cublasStatus_t cublas##Name##Matrix(int rows, int columns, int element, const void* from, int from_step, \
                                      void* to, int to_step, Position where) {                             \
    const Call call("cublas" #Name "Matrix", where);                                                       \
    return copy(to, to_step, from, from_step, element, rows, columns, kind, nullptr);                      \
  }                                                                                                        \
  cublasStatus_t cublas##Name##MatrixAsync(int rows, int columns, int element, const void* from,           \
                                           int from_step, void* to, int to_step, cudaStream_t stream,      \
                                           Position where) {                                               \
    const Call call("cublas" #Name "MatrixAsync", where);                                                  \
    return copy(to, to_step, from, from_step, element, rows, columns, kind, &stream);                      \
  }
EMULATOR_CUBLAS_COPY(Set, cudaMemcpyHostToDevice)
EMULATOR_CUBLAS_COPY(Get, cudaMemcpyDeviceToHost)
