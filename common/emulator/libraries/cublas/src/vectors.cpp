// cuBLAS: functions of vectors. Sums are computed in double, and rounded once.
#include <cmath>
#include <utility>

#include "handle.h"

namespace emulator::cublas {
namespace {

// A function of one vector or two that computes one number, on the host or on the device.
template <typename Result, typename Compute>
cublasStatus_t submit_result(LibraryCall& call, cublasHandle_t handle, int argument, Result* result,
                             Compute compute) {
  if (!result) return CUBLAS_STATUS_INVALID_VALUE;
  if (handle->pointer_mode == CUBLAS_POINTER_MODE_DEVICE) {
    call.writes("result", argument, elements(result, 1));
    return status_of(call.submit(handle->stream, [=] { *result = compute(); }));
  }
  Result value{};  // which the host stores, so that a pointer to the device is a mistake
  if (const cudaError_t error = call.submit_and_wait(handle->stream, [&] { value = compute(); }))
    return status_of(error);
  *result = value;
  return CUBLAS_STATUS_SUCCESS;
}

template <typename T>
cublasStatus_t dot(const char* name, Position where, cublasHandle_t handle, int n, const T* x, int incx,
                   const T* y, int incy, T* result) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  LibraryCall call(name, where);
  call.reads("x", 2, elements(x, n, incx));
  call.reads("y", 4, elements(y, n, incy));
  const Vector<const T> left(x, n, incx), right(y, n, incy);
  return submit_result(call, handle, 6, result, [=] {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += double(left[i]) * right[i];
    return T(sum);
  });
}

template <typename T>
cublasStatus_t nrm2(const char* name, Position where, cublasHandle_t handle, int n, const T* x, int incx,
                    T* result) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  LibraryCall call(name, where);
  call.reads("x", 2, elements(x, n, incx));
  const Vector<const T> vector(x, n, incx);
  return submit_result(call, handle, 4, result, [=] {
    T largest = 0;  // the squares of its multiples do not overflow
    for (int i = 0; i < n; i++) largest = std::fmax(largest, std::fabs(vector[i]));
    if (largest == 0 || std::isinf(largest)) return largest;
    double sum = 0;
    for (int i = 0; i < n; i++) sum += double(vector[i] / largest) * (vector[i] / largest);
    return T(largest * std::sqrt(sum));
  });
}

template <typename T>
cublasStatus_t asum(const char* name, Position where, cublasHandle_t handle, int n, const T* x, int incx,
                    T* result) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  LibraryCall call(name, where);
  call.reads("x", 2, elements(x, n, incx));
  const Vector<const T> vector(x, n, incx);
  return submit_result(call, handle, 4, result, [=] {
    double sum = 0;
    for (int i = 0; i < n; i++) sum += std::fabs(vector[i]);
    return T(sum);
  });
}

// The index, from 1 on, of the first element whose magnitude no other exceeds, or undercuts.
template <typename T>
cublasStatus_t extreme(const char* name, Position where, cublasHandle_t handle, int n, const T* x, int incx,
                       int* result, bool wants_largest) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (incx < 1) n = 0;
  LibraryCall call(name, where);
  call.reads("x", 2, elements(x, n, incx));
  const Vector<const T> vector(x, n, incx);
  return submit_result(call, handle, 4, result, [=] {
    int best = 0;
    for (int i = 1; i < n; i++) {
      const T here = std::fabs(vector[i]), there = std::fabs(vector[best]);
      if (wants_largest ? here > there : here < there) best = i;
    }
    return n > 0 ? best + 1 : 0;
  });
}

template <typename T>
cublasStatus_t axpy(const char* name, Position where, cublasHandle_t handle, int n, const T* factor,
                    const T* x, int incx, T* y, int incy) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!factor) return CUBLAS_STATUS_INVALID_VALUE;
  LibraryCall call(name, where);
  const Scalar<T> alpha(call, handle, "alpha", 2, factor);
  call.reads("x", 3, elements(x, n, incx));
  call.updates("y", 5, elements(y, n, incy));
  const Vector<const T> from(x, n, incx);
  const Vector<T> to(y, n, incy);
  return status_of(call.submit(handle->stream, [=] {
    const T value = alpha.value();
    for (int i = 0; i < n; i++) to[i] += value * from[i];
  }));
}

template <typename T>
cublasStatus_t scal(const char* name, Position where, cublasHandle_t handle, int n, const T* factor, T* x,
                    int incx) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (!factor) return CUBLAS_STATUS_INVALID_VALUE;
  LibraryCall call(name, where);
  const Scalar<T> alpha(call, handle, "alpha", 2, factor);
  call.updates("x", 3, elements(x, n, incx));
  const Vector<T> vector(x, n, incx);
  return status_of(call.submit(handle->stream, [=] {
    const T value = alpha.value();
    for (int i = 0; i < n; i++) vector[i] *= value;
  }));
}

template <typename T>
cublasStatus_t copy(const char* name, Position where, cublasHandle_t handle, int n, const T* x, int incx,
                    T* y, int incy) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  LibraryCall call(name, where);
  call.reads("x", 2, elements(x, n, incx));
  call.writes("y", 4, elements(y, n, incy));
  const Vector<const T> from(x, n, incx);
  const Vector<T> to(y, n, incy);
  return status_of(call.submit(handle->stream, [=] {
    for (int i = 0; i < n; i++) to[i] = from[i];
  }));
}

template <typename T>
cublasStatus_t swap(const char* name, Position where, cublasHandle_t handle, int n, T* x, int incx, T* y,
                    int incy) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  LibraryCall call(name, where);
  call.updates("x", 2, elements(x, n, incx));
  call.updates("y", 4, elements(y, n, incy));
  const Vector<T> left(x, n, incx), right(y, n, incy);
  return status_of(call.submit(handle->stream, [=] {
    for (int i = 0; i < n; i++) std::swap(left[i], right[i]);
  }));
}

}  // namespace
}  // namespace emulator::cublas

namespace blas = emulator::cublas;
using emulator::Position;

#define EMULATOR_CUBLAS_VECTORS(letter, i, T)                                                             \
  cublasStatus_t cublas##letter##dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y,      \
                                     int incy, T* result, Position where) {                               \
    return blas::dot("cublas" #letter "dot", where, handle, n, x, incx, y, incy, result);                 \
  }                                                                                                       \
  cublasStatus_t cublas##letter##nrm2(cublasHandle_t handle, int n, const T* x, int incx, T* result,      \
                                      Position where) {                                                   \
    return blas::nrm2("cublas" #letter "nrm2", where, handle, n, x, incx, result);                        \
  }                                                                                                       \
  cublasStatus_t cublas##letter##asum(cublasHandle_t handle, int n, const T* x, int incx, T* result,      \
                                      Position where) {                                                   \
    return blas::asum("cublas" #letter "asum", where, handle, n, x, incx, result);                        \
  }                                                                                                       \
  cublasStatus_t cublasI##i##amax(cublasHandle_t handle, int n, const T* x, int incx, int* result,        \
                                  Position where) {                                                       \
    return blas::extreme("cublasI" #i "amax", where, handle, n, x, incx, result, true);                   \
  }                                                                                                       \
  cublasStatus_t cublasI##i##amin(cublasHandle_t handle, int n, const T* x, int incx, int* result,        \
                                  Position where) {                                                       \
    return blas::extreme("cublasI" #i "amin", where, handle, n, x, incx, result, false);                  \
  }                                                                                                       \
  cublasStatus_t cublas##letter##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx, \
                                      T* y, int incy, Position where) {                                   \
    return blas::axpy("cublas" #letter "axpy", where, handle, n, alpha, x, incx, y, incy);                \
  }                                                                                                       \
  cublasStatus_t cublas##letter##scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx,       \
                                      Position where) {                                                   \
    return blas::scal("cublas" #letter "scal", where, handle, n, alpha, x, incx);                         \
  }                                                                                                       \
  cublasStatus_t cublas##letter##copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy, \
                                      Position where) {                                                   \
    return blas::copy("cublas" #letter "copy", where, handle, n, x, incx, y, incy);                       \
  }                                                                                                       \
  cublasStatus_t cublas##letter##swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy,       \
                                      Position where) {                                                   \
    return blas::swap("cublas" #letter "swap", where, handle, n, x, incx, y, incy);                       \
  }
EMULATOR_CUBLAS_VECTORS(S, s, float)
EMULATOR_CUBLAS_VECTORS(D, d, double)
