// cuBLAS: functions of a matrix and vectors, sums of matrices, and triangular systems.
#include <algorithm>

#include "handle.h"

namespace emulator::cublas {
namespace {

bool is_transposed(cublasOperation_t op) { return op != CUBLAS_OP_N; }
bool is_leading(int leading, int rows) { return leading >= std::max(1, rows); }

template <typename T>
cublasStatus_t gemv(const char* name, Position where, cublasHandle_t handle, cublasOperation_t op, int m,
                    int n, const T* given_alpha, const T* A, int lda, const T* x, int incx,
                    const T* given_beta, T* y, int incy) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || !is_leading(lda, m) || !incx || !incy || !given_alpha || !given_beta)
    return CUBLAS_STATUS_INVALID_VALUE;
  if (m == 0 || n == 0) return CUBLAS_STATUS_SUCCESS;
  const int count_x = is_transposed(op) ? m : n, count_y = is_transposed(op) ? n : m;
  LibraryCall call(name, where);
  const Scalar<T> alpha(call, handle, "alpha", 4, given_alpha), beta(call, handle, "beta", 9, given_beta);
  const bool reads_product = !alpha.is_zero(), reads_y = !beta.is_zero();
  if (reads_product) {
    call.reads("A", 5, columns(A, m, n, lda));
    call.reads("x", 7, elements(x, count_x, incx));
  }
  if (reads_y)
    call.updates("y", 10, elements(y, count_y, incy));
  else
    call.writes("y", 10, elements(y, count_y, incy));
  const Vector<const T> from(x, count_x, incx);
  const Vector<T> to(y, count_y, incy);
  const std::ptrdiff_t along = is_transposed(op) ? lda : 1, across = is_transposed(op) ? 1 : lda;
  return status_of(call.submit(handle->stream, [=] {
    for (int i = 0; i < count_y; i++) {
      double sum = 0;
      if (reads_product)
        for (int j = 0; j < count_x; j++) sum += double(A[i * along + j * across]) * from[j];
      to[i] = T(alpha.value() * sum + (reads_y ? beta.value() * to[i] : T{}));
    }
  }));
}

template <typename T>
cublasStatus_t ger(const char* name, Position where, cublasHandle_t handle, int m, int n,
                   const T* given_alpha, const T* x, int incx, const T* y, int incy, T* A, int lda) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  if (m < 0 || n < 0 || !is_leading(lda, m) || !incx || !incy || !given_alpha)
    return CUBLAS_STATUS_INVALID_VALUE;
  LibraryCall call(name, where);
  const Scalar<T> alpha(call, handle, "alpha", 3, given_alpha);
  call.reads("x", 4, elements(x, m, incx));
  call.reads("y", 6, elements(y, n, incy));
  call.updates("A", 8, columns(A, m, n, lda));
  const Vector<const T> left(x, m, incx), right(y, n, incy);
  return status_of(call.submit(handle->stream, [=] {
    for (int j = 0; j < n; j++)
      for (int i = 0; i < m; i++) A[std::ptrdiff_t(j) * lda + i] += alpha.value() * left[i] * right[j];
  }));
}

template <typename T>
cublasStatus_t geam(const char* name, Position where, cublasHandle_t handle, cublasOperation_t op_a,
                    cublasOperation_t op_b, int m, int n, const T* given_alpha, const T* A, int lda,
                    const T* given_beta, const T* B, int ldb, T* C, int ldc) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool turns_a = is_transposed(op_a), turns_b = is_transposed(op_b);
  const int rows_a = turns_a ? n : m, rows_b = turns_b ? n : m;
  const bool overlaps = (A == C && (turns_a || lda != ldc)) || (B == C && (turns_b || ldb != ldc));
  if (m < 0 || n < 0 || !is_leading(lda, rows_a) || !is_leading(ldb, rows_b) || !is_leading(ldc, m) ||
      !given_alpha || !given_beta || overlaps)
    return CUBLAS_STATUS_INVALID_VALUE;
  LibraryCall call(name, where);
  const Scalar<T> alpha(call, handle, "alpha", 5, given_alpha), beta(call, handle, "beta", 8, given_beta);
  const bool reads_a = !alpha.is_zero(), reads_b = !beta.is_zero();
  if (reads_a) call.reads("A", 6, columns(A, rows_a, turns_a ? m : n, lda));
  if (reads_b) call.reads("B", 9, columns(B, rows_b, turns_b ? m : n, ldb));
  call.writes("C", 11, columns(C, m, n, ldc));
  return status_of(call.submit(handle->stream, [=] {
    for (std::ptrdiff_t j = 0; j < n; j++)
      for (std::ptrdiff_t i = 0; i < m; i++) {
        const T a = reads_a ? alpha.value() * A[turns_a ? i * lda + j : j * lda + i] : T{};
        const T b = reads_b ? beta.value() * B[turns_b ? i * ldb + j : j * ldb + i] : T{};
        C[j * ldc + i] = a + b;
      }
  }));
}

// Solves op(A) * x = b in place, with op(A) [n,n] triangular: `a(i, j)` is an element of op(A).
template <typename T, typename Element>
void solve(int n, bool is_lower, bool is_unit, Element a, const Vector<T>& x) {
  for (int k = 0; k < n; k++) {
    const int i = is_lower ? k : n - 1 - k;
    T rest = x[i];
    for (int done = 0; done < k; done++) {
      const int j = is_lower ? done : n - 1 - done;
      rest -= a(i, j) * x[j];
    }
    x[i] = is_unit ? rest : rest / a(i, i);
  }
}

// The triangle of A, column by column: the other elements are not read, nor is a diagonal of ones.
template <typename T>
void read_triangle(LibraryCall& call, const T* A, int n, int lda, bool is_lower, bool is_unit) {
  for (int j = 0; j < n; j++) {
    const int skip = is_unit ? 1 : 0, first = is_lower ? j + skip : 0, last = is_lower ? n : j + 1 - skip;
    call.reads("A", 8, elements(A + std::ptrdiff_t(j) * lda + first, last - first));
  }
}

template <typename T>
cublasStatus_t trsm(const char* name, Position where, cublasHandle_t handle, cublasSideMode_t side,
                    cublasFillMode_t fill, cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,
                    const T* given_alpha, const T* A, int lda, T* B, int ldb) {
  if (!is_handle(handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool is_left = side == CUBLAS_SIDE_LEFT, is_lower = fill == CUBLAS_FILL_MODE_LOWER;
  const bool is_unit = diagonal == CUBLAS_DIAG_UNIT;
  const int size = is_left ? m : n, systems = is_left ? n : m;
  if (m < 0 || n < 0 || !is_leading(lda, size) || !is_leading(ldb, m) || !given_alpha)
    return CUBLAS_STATUS_INVALID_VALUE;
  LibraryCall call(name, where);
  const Scalar<T> alpha(call, handle, "alpha", 7, given_alpha);
  const bool is_zero = alpha.is_zero();
  if (!is_zero) read_triangle(call, A, size, lda, is_lower, is_unit);
  if (is_zero)
    call.writes("B", 10, columns(B, m, n, ldb));
  else
    call.updates("B", 10, columns(B, m, n, ldb));
  // X * op(A) = B is op(A)^T * X^T = B^T: the rows of B are the systems.
  const bool is_turned = is_transposed(op) == is_left;
  return status_of(call.submit(handle->stream, [=] {
    const auto a = [=](std::ptrdiff_t i, std::ptrdiff_t j) {
      return A[is_turned ? i * lda + j : j * lda + i];
    };
    for (std::ptrdiff_t s = 0; s < systems; s++) {
      const Vector<T> x(B + (is_left ? s * ldb : s), size, is_left ? 1 : ldb);
      for (int i = 0; i < size; i++) x[i] = is_zero ? T{} : T(alpha.value() * x[i]);
      if (!is_zero) solve(size, is_lower != is_turned, is_unit, a, x);
    }
  }));
}

}  // namespace
}  // namespace emulator::cublas

namespace blas = emulator::cublas;
using emulator::Position;

#define EMULATOR_CUBLAS_MATRICES(letter, T)                                                                  \
  cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,             \
                                      const T* alpha, const T* A, int lda, const T* x, int incx,             \
                                      const T* beta, T* y, int incy, Position where) {                       \
    return blas::gemv("cublas" #letter "gemv", where, handle, op, m, n, alpha, A, lda, x, incx, beta, y,     \
                      incy);                                                                                 \
  }                                                                                                          \
  cublasStatus_t cublas##letter##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x,        \
                                     int incx, const T* y, int incy, T* A, int lda, Position where) {        \
    return blas::ger("cublas" #letter "ger", where, handle, m, n, alpha, x, incx, y, incy, A, lda);          \
  }                                                                                                          \
  cublasStatus_t cublas##letter##geam(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, \
                                      int m, int n, const T* alpha, const T* A, int lda, const T* beta,      \
                                      const T* B, int ldb, T* C, int ldc, Position where) {                  \
    return blas::geam("cublas" #letter "geam", where, handle, op_a, op_b, m, n, alpha, A, lda, beta, B, ldb, \
                      C, ldc);                                                                               \
  }                                                                                                          \
  cublasStatus_t cublas##letter##trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,   \
                                      cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,         \
                                      const T* alpha, const T* A, int lda, T* B, int ldb, Position where) {  \
    return blas::trsm("cublas" #letter "trsm", where, handle, side, fill, op, diagonal, m, n, alpha, A, lda, \
                      B, ldb);                                                                               \
  }
EMULATOR_CUBLAS_MATRICES(S, float)
EMULATOR_CUBLAS_MATRICES(D, double)
