// What the functions of cuBLAS share: the handle, and scalars on the host or on the device.
#pragma once

#include <cstring>

#include "cublas_v2.h"
#include "emulator/operands.h"

struct cublasContext {
  cudaStream_t stream = nullptr;
  cublasPointerMode_t pointer_mode = CUBLAS_POINTER_MODE_HOST;
  cublasMath_t math_mode = CUBLAS_DEFAULT_MATH;
  cublasAtomicsMode_t atomics_mode = CUBLAS_ATOMICS_NOT_ALLOWED;
};

namespace emulator::cublas {

bool is_handle(cublasHandle_t handle);

inline cublasStatus_t status_of(cudaError_t error) {
  if (!error) return CUBLAS_STATUS_SUCCESS;
  return error == cudaErrorInvalidValue ? CUBLAS_STATUS_INVALID_VALUE : CUBLAS_STATUS_EXECUTION_FAILED;
}

// An argument such as alpha: of the host, read during the call; or of the device, read by the work.
template <typename T>
class Scalar {
 public:
  Scalar(LibraryCall& call, cublasHandle_t handle, const char* parameter, int argument, const T* pointer)
      : pointer_(pointer), is_on_host_(handle->pointer_mode == CUBLAS_POINTER_MODE_HOST) {
    if (!is_on_host_)
      call.reads(parameter, argument, elements(pointer, 1));
    else if (pointer)
      std::memcpy(&value_, pointer, sizeof(T));
  }
  T value() const { return is_on_host_ ? value_ : *pointer_; }
  // Whether it is certainly zero, so that what it is multiplied with is not read.
  bool is_zero() const { return is_on_host_ && value_ == T{}; }

 private:
  const T* pointer_;
  bool is_on_host_;
  T value_{};
};

// The elements of a vector in order; a negative step walks from its end.
template <typename T>
class Vector {
 public:
  Vector(T* begin, int count, int step)
      : first_(step < 0 ? begin - std::ptrdiff_t(count - 1) * step : begin), step_(step) {}
  T& operator[](std::ptrdiff_t i) const { return first_[i * step_]; }

 private:
  T* first_;
  std::ptrdiff_t step_;
};

}  // namespace emulator::cublas
