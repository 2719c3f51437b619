// Stands for cuBLAS's header of this name: products of matrices and vectors in column-major order.
//
// Sizes and leading dimensions count elements. Each function returns CUBLAS_STATUS_INVALID_VALUE for sizes
// that cuBLAS does not allow, and CUBLAS_STATUS_EXECUTION_FAILED if an operand's memory is wrong; the report
// says how.
#pragma once

#include <cstddef>

#include "cuComplex.h"
#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

#define CUBLAS_VER_MAJOR 13
#define CUBLAS_VER_MINOR 1
#define CUBLAS_VER_PATCH 0
#define CUBLAS_VERSION (CUBLAS_VER_MAJOR * 10000 + CUBLAS_VER_MINOR * 100 + CUBLAS_VER_PATCH)
#define CUBLASAPI
#define CUBLASWINAPI
#define CUBLAS_V2_H_  // programs ask for these
#define CUBLAS_API_H_

enum cublasStatus_t {
  CUBLAS_STATUS_SUCCESS = 0,
  CUBLAS_STATUS_NOT_INITIALIZED = 1,
  CUBLAS_STATUS_ALLOC_FAILED = 3,
  CUBLAS_STATUS_INVALID_VALUE = 7,
  CUBLAS_STATUS_ARCH_MISMATCH = 8,
  CUBLAS_STATUS_MAPPING_ERROR = 11,
  CUBLAS_STATUS_EXECUTION_FAILED = 13,
  CUBLAS_STATUS_INTERNAL_ERROR = 14,
  CUBLAS_STATUS_NOT_SUPPORTED = 15,
  CUBLAS_STATUS_LICENSE_ERROR = 16,
};
using cublasStatus = cublasStatus_t;
enum cublasOperation_t {
  CUBLAS_OP_N = 0,
  CUBLAS_OP_T = 1,
  CUBLAS_OP_C = 2,
  CUBLAS_OP_HERMITAN = 2,
  CUBLAS_OP_CONJG = 3
};
enum cublasFillMode_t { CUBLAS_FILL_MODE_LOWER, CUBLAS_FILL_MODE_UPPER, CUBLAS_FILL_MODE_FULL };
enum cublasDiagType_t { CUBLAS_DIAG_NON_UNIT, CUBLAS_DIAG_UNIT };
enum cublasSideMode_t { CUBLAS_SIDE_LEFT, CUBLAS_SIDE_RIGHT };
enum cublasPointerMode_t { CUBLAS_POINTER_MODE_HOST, CUBLAS_POINTER_MODE_DEVICE };
enum cublasAtomicsMode_t { CUBLAS_ATOMICS_NOT_ALLOWED, CUBLAS_ATOMICS_ALLOWED };
enum cublasMath_t {  // without effect: products are computed in the type that is asked for
  CUBLAS_DEFAULT_MATH = 0,
  CUBLAS_TENSOR_OP_MATH = 1,
  CUBLAS_PEDANTIC_MATH = 2,
  CUBLAS_TF32_TENSOR_OP_MATH = 3,
  CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16
};
enum cublasComputeType_t {
  CUBLAS_COMPUTE_16F = 64,
  CUBLAS_COMPUTE_16F_PEDANTIC = 65,
  CUBLAS_COMPUTE_32F = 68,
  CUBLAS_COMPUTE_32F_PEDANTIC = 69,
  CUBLAS_COMPUTE_64F = 70,
  CUBLAS_COMPUTE_64F_PEDANTIC = 71,
  CUBLAS_COMPUTE_32I = 72,
  CUBLAS_COMPUTE_32I_PEDANTIC = 73,
  CUBLAS_COMPUTE_32F_FAST_16F = 74,
  CUBLAS_COMPUTE_32F_FAST_16BF = 75,
  CUBLAS_COMPUTE_32F_FAST_TF32 = 77
};
// There is one algorithm. Those with numbers are CUBLAS_GEMM_ALGO0 and the following.
enum cublasGemmAlgo_t {
  CUBLAS_GEMM_DFALT = -1,
  CUBLAS_GEMM_DEFAULT = -1,
  CUBLAS_GEMM_ALGO0 = 0,
  CUBLAS_GEMM_ALGO1,
  CUBLAS_GEMM_ALGO2,
  CUBLAS_GEMM_ALGO3,
  CUBLAS_GEMM_ALGO4,
  CUBLAS_GEMM_ALGO5,
  CUBLAS_GEMM_ALGO6,
  CUBLAS_GEMM_ALGO7,
  CUBLAS_GEMM_ALGO8,
  CUBLAS_GEMM_ALGO9,
  CUBLAS_GEMM_ALGO10,
  CUBLAS_GEMM_ALGO11,
  CUBLAS_GEMM_ALGO12,
  CUBLAS_GEMM_ALGO13,
  CUBLAS_GEMM_ALGO14,
  CUBLAS_GEMM_ALGO15,
  CUBLAS_GEMM_ALGO16,
  CUBLAS_GEMM_ALGO17,
  CUBLAS_GEMM_ALGO18,
  CUBLAS_GEMM_ALGO19,
  CUBLAS_GEMM_ALGO20,
  CUBLAS_GEMM_ALGO21,
  CUBLAS_GEMM_ALGO22,
  CUBLAS_GEMM_ALGO23,
  CUBLAS_GEMM_DEFAULT_TENSOR_OP = 99,
  CUBLAS_GEMM_DFALT_TENSOR_OP = 99,
  CUBLAS_GEMM_ALGO0_TENSOR_OP = 100,
  CUBLAS_GEMM_ALGO1_TENSOR_OP,
  CUBLAS_GEMM_ALGO2_TENSOR_OP,
  CUBLAS_GEMM_ALGO3_TENSOR_OP,
  CUBLAS_GEMM_ALGO4_TENSOR_OP,
  CUBLAS_GEMM_ALGO5_TENSOR_OP,
  CUBLAS_GEMM_ALGO6_TENSOR_OP,
  CUBLAS_GEMM_ALGO7_TENSOR_OP,
  CUBLAS_GEMM_ALGO8_TENSOR_OP,
  CUBLAS_GEMM_ALGO9_TENSOR_OP,
  CUBLAS_GEMM_ALGO10_TENSOR_OP,
  CUBLAS_GEMM_ALGO11_TENSOR_OP,
  CUBLAS_GEMM_ALGO12_TENSOR_OP,
  CUBLAS_GEMM_ALGO13_TENSOR_OP,
  CUBLAS_GEMM_ALGO14_TENSOR_OP,
  CUBLAS_GEMM_ALGO15_TENSOR_OP
};
using cublasDataType_t = cudaDataType;
using cublasHandle_t = struct cublasContext*;

EMULATOR_BEGIN
cublasStatus_t cublasCreate(cublasHandle_t* handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle, EMULATOR_HERE);  // waits for the device
cublasStatus_t cublasGetVersion(cublasHandle_t handle, int* version);
cublasStatus_t cublasGetProperty(libraryPropertyType property, int* value);
const char* cublasGetStatusName(cublasStatus_t status);
const char* cublasGetStatusString(cublasStatus_t status);
cublasStatus_t cublasSetStream(cublasHandle_t handle, cudaStream_t stream);
cublasStatus_t cublasGetStream(cublasHandle_t handle, cudaStream_t* stream);
cublasStatus_t cublasSetPointerMode(cublasHandle_t handle, cublasPointerMode_t mode);
cublasStatus_t cublasGetPointerMode(cublasHandle_t handle, cublasPointerMode_t* mode);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
cublasStatus_t cublasGetMathMode(cublasHandle_t handle, cublasMath_t* mode);
cublasStatus_t cublasSetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t mode);
cublasStatus_t cublasGetAtomicsMode(cublasHandle_t handle, cublasAtomicsMode_t* mode);
cublasStatus_t cublasSetWorkspace(cublasHandle_t handle, void* memory, std::size_t bytes);

// Copies between host and device: of `count` elements with steps, or of a matrix [rows,columns].
cublasStatus_t cublasSetVector(int count, int element, const void* x, int step_x, void* d_y, int step_y,
                               EMULATOR_HERE);
cublasStatus_t cublasGetVector(int count, int element, const void* d_x, int step_x, void* y, int step_y,
                               EMULATOR_HERE);
cublasStatus_t cublasSetMatrix(int rows, int columns, int element, const void* a, int leading_a, void* d_b,
                               int leading_b, EMULATOR_HERE);
cublasStatus_t cublasGetMatrix(int rows, int columns, int element, const void* d_a, int leading_a, void* b,
                               int leading_b, EMULATOR_HERE);
cublasStatus_t cublasSetVectorAsync(int count, int element, const void* x, int step_x, void* d_y, int step_y,
                                    cudaStream_t stream, EMULATOR_HERE);
cublasStatus_t cublasGetVectorAsync(int count, int element, const void* d_x, int step_x, void* y, int step_y,
                                    cudaStream_t stream, EMULATOR_HERE);
cublasStatus_t cublasSetMatrixAsync(int rows, int columns, int element, const void* a, int leading_a,
                                    void* d_b, int leading_b, cudaStream_t stream, EMULATOR_HERE);
cublasStatus_t cublasGetMatrixAsync(int rows, int columns, int element, const void* d_a, int leading_a,
                                    void* b, int leading_b, cudaStream_t stream, EMULATOR_HERE);

// C = alpha * op(A) * op(B) + beta * C, with op(A) [m,k], op(B) [k,n], C [m,n].
#define EMULATOR_CUBLAS_GEMM(letter, T)                                                                      \
  cublasStatus_t cublas##letter##gemm(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, \
                                      int m, int n, int k, const T* alpha, const T* A, int lda, const T* B,  \
                                      int ldb, const T* beta, T* C, int ldc, EMULATOR_HERE);                 \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                                         \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,            \
      const T* alpha, const T* A, int lda, long long stride_a, const T* B, int ldb, long long stride_b,      \
      const T* beta, T* C, int ldc, long long stride_c, int batch, EMULATOR_HERE);                           \
  cublasStatus_t cublas##letter##gemmBatched(                                                                \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,            \
      const T* alpha, const T* const A[], int lda, const T* const B[], int ldb, const T* beta, T* const C[], \
      int ldc, int batch, EMULATOR_HERE);
EMULATOR_CUBLAS_GEMM(S, float)
EMULATOR_CUBLAS_GEMM(D, double)
EMULATOR_CUBLAS_GEMM(H, __half)
EMULATOR_CUBLAS_GEMM(C, cuComplex)
EMULATOR_CUBLAS_GEMM(Z, cuDoubleComplex)
#undef EMULATOR_CUBLAS_GEMM

// The same with a type for each matrix, and one for sums and for alpha and beta. CUDA 10 has no enumeration
// of the latter.
#define EMULATOR_CUBLAS_GEMM_EX(Compute)                                                                    \
  cublasStatus_t cublasGemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, \
                              int n, int k, const void* alpha, const void* A, cudaDataType type_a, int lda, \
                              const void* B, cudaDataType type_b, int ldb, const void* beta, void* C,       \
                              cudaDataType type_c, int ldc, Compute compute, cublasGemmAlgo_t algorithm,    \
                              EMULATOR_HERE);                                                               \
  cublasStatus_t cublasGemmStridedBatchedEx(                                                                \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,           \
      const void* alpha, const void* A, cudaDataType type_a, int lda, long long stride_a, const void* B,    \
      cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* C, cudaDataType type_c,     \
      int ldc, long long stride_c, int batch, Compute compute, cublasGemmAlgo_t algorithm, EMULATOR_HERE);  \
  cublasStatus_t cublasGemmBatchedEx(                                                                       \
      cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k,           \
      const void* alpha, const void* const A[], cudaDataType type_a, int lda, const void* const B[],        \
      cudaDataType type_b, int ldb, const void* beta, void* const C[], cudaDataType type_c, int ldc,        \
      int batch, Compute compute, cublasGemmAlgo_t algorithm, EMULATOR_HERE);
EMULATOR_CUBLAS_GEMM_EX(cublasComputeType_t)
EMULATOR_CUBLAS_GEMM_EX(cudaDataType)
#undef EMULATOR_CUBLAS_GEMM_EX
cublasStatus_t cublasSgemmEx(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m,
                             int n, int k, const float* alpha, const void* A, cudaDataType type_a, int lda,
                             const void* B, cudaDataType type_b, int ldb, const float* beta, void* C,
                             cudaDataType type_c, int ldc, EMULATOR_HERE);

#define EMULATOR_CUBLAS_REAL(letter, i, T)                                                                   \
  /* y = alpha * op(A) * x + beta * y, with A [m,n] */                                                       \
  cublasStatus_t cublas##letter##gemv(cublasHandle_t handle, cublasOperation_t op, int m, int n,             \
                                      const T* alpha, const T* A, int lda, const T* x, int incx,             \
                                      const T* beta, T* y, int incy, EMULATOR_HERE);                         \
  /* A = alpha * x * y^T + A, with A [m,n] */                                                                \
  cublasStatus_t cublas##letter##ger(cublasHandle_t handle, int m, int n, const T* alpha, const T* x,        \
                                     int incx, const T* y, int incy, T* A, int lda, EMULATOR_HERE);          \
  /* C = alpha * op(A) + beta * op(B), with C [m,n], which may be A or B */                                  \
  cublasStatus_t cublas##letter##geam(cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, \
                                      int m, int n, const T* alpha, const T* A, int lda, const T* beta,      \
                                      const T* B, int ldb, T* C, int ldc, EMULATOR_HERE);                    \
  /* op(A) * X = alpha * B, or X * op(A) = alpha * B; X takes the place of B [m,n] */                        \
  cublasStatus_t cublas##letter##trsm(cublasHandle_t handle, cublasSideMode_t side, cublasFillMode_t fill,   \
                                      cublasOperation_t op, cublasDiagType_t diagonal, int m, int n,         \
                                      const T* alpha, const T* A, int lda, T* B, int ldb, EMULATOR_HERE);    \
  /* Vectors of n elements. The results go to the host, or to the device, by the pointer mode. */            \
  cublasStatus_t cublas##letter##dot(cublasHandle_t handle, int n, const T* x, int incx, const T* y,         \
                                     int incy, T* result, EMULATOR_HERE);                                    \
  cublasStatus_t cublas##letter##axpy(cublasHandle_t handle, int n, const T* alpha, const T* x, int incx,    \
                                      T* y, int incy, EMULATOR_HERE);                                        \
  cublasStatus_t cublas##letter##scal(cublasHandle_t handle, int n, const T* alpha, T* x, int incx,          \
                                      EMULATOR_HERE);                                                        \
  cublasStatus_t cublas##letter##copy(cublasHandle_t handle, int n, const T* x, int incx, T* y, int incy,    \
                                      EMULATOR_HERE);                                                        \
  cublasStatus_t cublas##letter##swap(cublasHandle_t handle, int n, T* x, int incx, T* y, int incy,          \
                                      EMULATOR_HERE);                                                        \
  cublasStatus_t cublas##letter##nrm2(cublasHandle_t handle, int n, const T* x, int incx, T* result,         \
                                      EMULATOR_HERE);                                                        \
  cublasStatus_t cublas##letter##asum(cublasHandle_t handle, int n, const T* x, int incx, T* result,         \
                                      EMULATOR_HERE);                                                        \
  /* The index of the first element of largest or smallest magnitude, from 1 on; 0 if there is none. */      \
  cublasStatus_t cublasI##i##amax(cublasHandle_t handle, int n, const T* x, int incx, int* result,           \
                                  EMULATOR_HERE);                                                            \
  cublasStatus_t cublasI##i##amin(cublasHandle_t handle, int n, const T* x, int incx, int* result,           \
                                  EMULATOR_HERE);
EMULATOR_CUBLAS_REAL(S, s, float)
EMULATOR_CUBLAS_REAL(D, d, double)
#undef EMULATOR_CUBLAS_REAL

// A call of one of these is an error that names it.
#define EMULATOR_CUBLAS_REFUSED(name)                                                               \
  template <typename... Arguments>                                                                  \
  __attribute__((error("the emulator does not support cublas" #name))) cublasStatus_t cublas##name( \
      Arguments&&...);
#define EMULATOR_CUBLAS_REFUSED_TYPES(name) \
  EMULATOR_CUBLAS_REFUSED(S##name)          \
  EMULATOR_CUBLAS_REFUSED(D##name) EMULATOR_CUBLAS_REFUSED(C##name) EMULATOR_CUBLAS_REFUSED(Z##name)
EMULATOR_CUBLAS_REFUSED_TYPES(symm)
EMULATOR_CUBLAS_REFUSED_TYPES(syrk)
EMULATOR_CUBLAS_REFUSED_TYPES(syr2k)
EMULATOR_CUBLAS_REFUSED_TYPES(trmm)
EMULATOR_CUBLAS_REFUSED_TYPES(symv)
EMULATOR_CUBLAS_REFUSED_TYPES(syr)
EMULATOR_CUBLAS_REFUSED_TYPES(syr2)
EMULATOR_CUBLAS_REFUSED_TYPES(trsv)
EMULATOR_CUBLAS_REFUSED_TYPES(trmv)
EMULATOR_CUBLAS_REFUSED_TYPES(gbmv)
EMULATOR_CUBLAS_REFUSED_TYPES(rot)
EMULATOR_CUBLAS_REFUSED_TYPES(rotg)
EMULATOR_CUBLAS_REFUSED_TYPES(dgmm)
EMULATOR_CUBLAS_REFUSED_TYPES(trsmBatched)
EMULATOR_CUBLAS_REFUSED_TYPES(getrfBatched)
EMULATOR_CUBLAS_REFUSED_TYPES(getrsBatched)
EMULATOR_CUBLAS_REFUSED_TYPES(getriBatched)
EMULATOR_CUBLAS_REFUSED_TYPES(matinvBatched)
#undef EMULATOR_CUBLAS_REFUSED_TYPES
#undef EMULATOR_CUBLAS_REFUSED
EMULATOR_END
