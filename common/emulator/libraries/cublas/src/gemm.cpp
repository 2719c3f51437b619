// cuBLAS: the products of matrices, single ones and batches.
#include <algorithm>

#include "handle.h"
#include "product.h"

namespace emulator::cublas {
namespace {

enum class Batch { strided, pointers };

struct Gemm {
  const char* name;
  Position where;
  cublasHandle_t handle;
  Shape shape;
  const void *alpha, *beta;
  Matrix a, b, c;
  std::int64_t count;           // matrices
  cublasComputeType_t compute;  // of the sums
  Batch batch = Batch::strided;
  int step = 2;  // from the argument A to B, and from B to beta

  std::int64_t rows_a() const { return shape.op_a == CUBLAS_OP_N ? shape.m : shape.k; }
  std::int64_t columns_a() const { return shape.op_a == CUBLAS_OP_N ? shape.k : shape.m; }
  std::int64_t rows_b() const { return shape.op_b == CUBLAS_OP_N ? shape.k : shape.n; }
  std::int64_t columns_b() const { return shape.op_b == CUBLAS_OP_N ? shape.n : shape.k; }
};

bool is_operation(cublasOperation_t op) {
  return op == CUBLAS_OP_N || op == CUBLAS_OP_T || op == CUBLAS_OP_C;
}

cublasStatus_t check_sizes(const Gemm& gemm) {
  const auto [op_a, op_b, m, n, k] = gemm.shape;
  if (!is_handle(gemm.handle)) return CUBLAS_STATUS_NOT_INITIALIZED;
  const bool is_valid = is_operation(op_a) && is_operation(op_b) && m >= 0 && n >= 0 && k >= 0 &&
                        gemm.count >= 0 && gemm.a.leading >= std::max<std::int64_t>(1, gemm.rows_a()) &&
                        gemm.b.leading >= std::max<std::int64_t>(1, gemm.rows_b()) &&
                        gemm.c.leading >= std::max<std::int64_t>(1, m) && gemm.alpha && gemm.beta;
  return is_valid ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

Rows region_of(const Matrix& x, std::int64_t rows, std::int64_t count, std::int64_t batch) {
  const std::size_t element = size_of(x.type);
  return {x.begin,           x.leading * element, rows * element, std::size_t(count), x.stride * element,
          std::size_t(batch)};
}

void add_operands(LibraryCall& call, const Gemm& gemm, bool reads_product, bool reads_c) {
  const int place = 7, place_c = place + 2 * gemm.step + 1;
  if (reads_product) {
    call.reads("A", place, region_of(gemm.a, gemm.rows_a(), gemm.columns_a(), gemm.count));
    call.reads("B", place + gemm.step, region_of(gemm.b, gemm.rows_b(), gemm.columns_b(), gemm.count));
  }
  const Rows c = region_of(gemm.c, gemm.shape.m, gemm.shape.n, gemm.count);
  if (reads_c)
    call.updates("C", place_c, c);
  else
    call.writes("C", place_c, c);
}

template <typename Sum>
void multiply_all(const Gemm& gemm, Sum alpha, Sum beta, bool reads_product, bool reads_c) {
  const auto advance = [](Matrix& x) {
    x.begin = static_cast<const std::byte*>(x.begin) + x.stride * size_of(x.type);
  };
  Matrix a = gemm.a, b = gemm.b, c = gemm.c;
  for (std::int64_t i = 0; i < gemm.count; i++, advance(a), advance(b), advance(c))
    multiply(gemm.shape, a, b, c, alpha, beta, reads_product, reads_c);
}

// One matrix of a batch given by pointers, which are in memory of the device.
Gemm one_of(const Gemm& batch, std::int64_t i) {
  Gemm one = batch;
  one.count = 1;
  for (Matrix* x : {&one.a, &one.b, &one.c}) x->begin = static_cast<const void* const*>(x->begin)[i];
  return one;
}

template <typename Sum, typename Given = Sum>
cublasStatus_t submit(const Gemm& gemm) {
  LibraryCall call(gemm.name, gemm.where);
  const Scalar<Given> alpha(call, gemm.handle, "alpha", 6, static_cast<const Given*>(gemm.alpha));
  const Scalar<Given> beta(call, gemm.handle, "beta", 7 + 2 * gemm.step,
                           static_cast<const Given*>(gemm.beta));
  const bool reads_product = gemm.shape.k > 0 && !alpha.is_zero(), reads_c = !beta.is_zero();
  if (gemm.shape.m == 0 || gemm.shape.n == 0 || gemm.count == 0) return CUBLAS_STATUS_SUCCESS;
  if (gemm.batch == Batch::strided) {
    add_operands(call, gemm, reads_product, reads_c);
    return status_of(call.submit(gemm.handle->stream, [=] {
      multiply_all(gemm, Sum(alpha.value()), Sum(beta.value()), reads_product, reads_c);
    }));
  }
  const auto pointers = [&](const Matrix& x) {
    return elements(static_cast<const void* const*>(x.begin), gemm.count);
  };
  if (reads_product) {
    call.reads("Aarray", 7, pointers(gemm.a));
    call.reads("Barray", 7 + gemm.step, pointers(gemm.b));
  }
  call.reads("Carray", 8 + 2 * gemm.step, pointers(gemm.c));
  return status_of(call.submit(gemm.handle->stream, [=] {
    for (std::int64_t i = 0; i < gemm.count; i++) {
      const Gemm one = one_of(gemm, i);
      LibraryCall each(gemm.name, gemm.where);
      add_operands(each, one, reads_product, reads_c);
      each.run([&] {
        multiply(one.shape, one.a, one.b, one.c, Sum(alpha.value()), Sum(beta.value()), reads_product,
                 reads_c);
      });
    }
  }));
}

// The combinations of types that cuBLAS supports.
bool is_supported(cublasComputeType_t compute, cudaDataType ab, cudaDataType c) {
  switch (compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return ab == CUDA_R_16F && c == CUDA_R_16F;
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return ab == CUDA_R_8I && c == CUDA_R_32I;
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return (ab == CUDA_R_64F || ab == CUDA_C_64F) && c == ab;
    case CUBLAS_COMPUTE_32F:
    case CUBLAS_COMPUTE_32F_PEDANTIC:
      if (ab == CUDA_R_8I || ab == CUDA_R_16F || ab == CUDA_R_16BF)
        return c == CUDA_R_32F || (c == ab && c != CUDA_R_8I);
      [[fallthrough]];
    default:
      return (ab == CUDA_R_32F || ab == CUDA_C_32F) && c == ab;
  }
}

cublasStatus_t run(const Gemm& gemm) {
  if (const cublasStatus_t status = check_sizes(gemm)) return status;
  const cudaDataType type = gemm.a.type;
  if (type == CUDA_R_8I && (gemm.a.leading % 4 || gemm.b.leading % 4)) return CUBLAS_STATUS_NOT_SUPPORTED;
  if (gemm.b.type != type || !is_supported(gemm.compute, type, gemm.c.type))
    return CUBLAS_STATUS_NOT_SUPPORTED;
  switch (gemm.compute) {
    case CUBLAS_COMPUTE_16F:
    case CUBLAS_COMPUTE_16F_PEDANTIC:
      return submit<float, __half>(gemm);
    case CUBLAS_COMPUTE_32I:
    case CUBLAS_COMPUTE_32I_PEDANTIC:
      return submit<std::int32_t>(gemm);
    case CUBLAS_COMPUTE_64F:
    case CUBLAS_COMPUTE_64F_PEDANTIC:
      return type == CUDA_C_64F ? submit<std::complex<double>>(gemm) : submit<double>(gemm);
    default:
      return type == CUDA_C_32F ? submit<std::complex<float>>(gemm) : submit<float>(gemm);
  }
}

// Before CUDA 11, programs gave the type of the sums.
cublasComputeType_t compute_of(cudaDataType type) {
  switch (type) {
    case CUDA_R_16F:
      return CUBLAS_COMPUTE_16F;
    case CUDA_R_32I:
      return CUBLAS_COMPUTE_32I;
    case CUDA_R_64F:
    case CUDA_C_64F:
      return CUBLAS_COMPUTE_64F;
    default:
      return CUBLAS_COMPUTE_32F;
  }
}
cublasComputeType_t compute_of(cublasComputeType_t compute) { return compute; }

}  // namespace
}  // namespace emulator::cublas

using namespace emulator::cublas;
using emulator::Position;

#define EMULATOR_SIZES \
  cublasHandle_t handle, cublasOperation_t op_a, cublasOperation_t op_b, int m, int n, int k
#define EMULATOR_SHAPE {op_a, op_b, m, n, k}

#define EMULATOR_CUBLAS_GEMM(letter, T, type, compute)                                                    \
  cublasStatus_t cublas##letter##gemm(EMULATOR_SIZES, const T* alpha, const T* A, int lda, const T* B,    \
                                      int ldb, const T* beta, T* C, int ldc, Position where) {            \
    return run({"cublas" #letter "gemm",                                                                  \
                where,                                                                                    \
                handle,                                                                                   \
                EMULATOR_SHAPE,                                                                           \
                alpha,                                                                                    \
                beta,                                                                                     \
                {A, type, lda},                                                                           \
                {B, type, ldb},                                                                           \
                {C, type, ldc},                                                                           \
                1,                                                                                        \
                compute});                                                                                \
  }                                                                                                       \
  cublasStatus_t cublas##letter##gemmStridedBatched(                                                      \
      EMULATOR_SIZES, const T* alpha, const T* A, int lda, long long stride_a, const T* B, int ldb,       \
      long long stride_b, const T* beta, T* C, int ldc, long long stride_c, int batch, Position where) {  \
    return run({"cublas" #letter "gemmStridedBatched",                                                    \
                where,                                                                                    \
                handle,                                                                                   \
                EMULATOR_SHAPE,                                                                           \
                alpha,                                                                                    \
                beta,                                                                                     \
                {A, type, lda, stride_a},                                                                 \
                {B, type, ldb, stride_b},                                                                 \
                {C, type, ldc, stride_c},                                                                 \
                batch,                                                                                    \
                compute,                                                                                  \
                Batch::strided,                                                                           \
                3});                                                                                      \
  }                                                                                                       \
  cublasStatus_t cublas##letter##gemmBatched(EMULATOR_SIZES, const T* alpha, const T* const A[], int lda, \
                                             const T* const B[], int ldb, const T* beta, T* const C[],    \
                                             int ldc, int batch, Position where) {                        \
    return run({"cublas" #letter "gemmBatched",                                                           \
                where,                                                                                    \
                handle,                                                                                   \
                EMULATOR_SHAPE,                                                                           \
                alpha,                                                                                    \
                beta,                                                                                     \
                {A, type, lda},                                                                           \
                {B, type, ldb},                                                                           \
                {C, type, ldc},                                                                           \
                batch,                                                                                    \
                compute,                                                                                  \
                Batch::pointers});                                                                        \
  }
EMULATOR_CUBLAS_GEMM(S, float, CUDA_R_32F, CUBLAS_COMPUTE_32F)
EMULATOR_CUBLAS_GEMM(D, double, CUDA_R_64F, CUBLAS_COMPUTE_64F)
EMULATOR_CUBLAS_GEMM(H, __half, CUDA_R_16F, CUBLAS_COMPUTE_16F)
EMULATOR_CUBLAS_GEMM(C, cuComplex, CUDA_C_32F, CUBLAS_COMPUTE_32F)
EMULATOR_CUBLAS_GEMM(Z, cuDoubleComplex, CUDA_C_64F, CUBLAS_COMPUTE_64F)

#define EMULATOR_CUBLAS_GEMM_EX(Compute)                                                                  \
  cublasStatus_t cublasGemmEx(EMULATOR_SIZES, const void* alpha, const void* A, cudaDataType type_a,      \
                              int lda, const void* B, cudaDataType type_b, int ldb, const void* beta,     \
                              void* C, cudaDataType type_c, int ldc, Compute compute, cublasGemmAlgo_t,   \
                              Position where) {                                                           \
    return run({"cublasGemmEx",                                                                           \
                where,                                                                                    \
                handle,                                                                                   \
                EMULATOR_SHAPE,                                                                           \
                alpha,                                                                                    \
                beta,                                                                                     \
                {A, type_a, lda},                                                                         \
                {B, type_b, ldb},                                                                         \
                {C, type_c, ldc},                                                                         \
                1,                                                                                        \
                compute_of(compute),                                                                      \
                Batch::strided,                                                                           \
                3});                                                                                      \
  }                                                                                                       \
  cublasStatus_t cublasGemmStridedBatchedEx(                                                              \
      EMULATOR_SIZES, const void* alpha, const void* A, cudaDataType type_a, int lda, long long stride_a, \
      const void* B, cudaDataType type_b, int ldb, long long stride_b, const void* beta, void* C,         \
      cudaDataType type_c, int ldc, long long stride_c, int batch, Compute compute, cublasGemmAlgo_t,     \
      Position where) {                                                                                   \
    return run({"cublasGemmStridedBatchedEx",                                                             \
                where,                                                                                    \
                handle,                                                                                   \
                EMULATOR_SHAPE,                                                                           \
                alpha,                                                                                    \
                beta,                                                                                     \
                {A, type_a, lda, stride_a},                                                               \
                {B, type_b, ldb, stride_b},                                                               \
                {C, type_c, ldc, stride_c},                                                               \
                batch,                                                                                    \
                compute_of(compute),                                                                      \
                Batch::strided,                                                                           \
                4});                                                                                      \
  }                                                                                                       \
  cublasStatus_t cublasGemmBatchedEx(                                                                     \
      EMULATOR_SIZES, const void* alpha, const void* const A[], cudaDataType type_a, int lda,             \
      const void* const B[], cudaDataType type_b, int ldb, const void* beta, void* const C[],             \
      cudaDataType type_c, int ldc, int batch, Compute compute, cublasGemmAlgo_t, Position where) {       \
    return run({"cublasGemmBatchedEx",                                                                    \
                where,                                                                                    \
                handle,                                                                                   \
                EMULATOR_SHAPE,                                                                           \
                alpha,                                                                                    \
                beta,                                                                                     \
                {A, type_a, lda},                                                                         \
                {B, type_b, ldb},                                                                         \
                {C, type_c, ldc},                                                                         \
                batch,                                                                                    \
                compute_of(compute),                                                                      \
                Batch::pointers,                                                                          \
                3});                                                                                      \
  }
EMULATOR_CUBLAS_GEMM_EX(cublasComputeType_t)
EMULATOR_CUBLAS_GEMM_EX(cudaDataType)

cublasStatus_t cublasSgemmEx(EMULATOR_SIZES, const float* alpha, const void* A, cudaDataType type_a, int lda,
                             const void* B, cudaDataType type_b, int ldb, const float* beta, void* C,
                             cudaDataType type_c, int ldc, Position where) {
  return run({"cublasSgemmEx",
              where,
              handle,
              EMULATOR_SHAPE,
              alpha,
              beta,
              {A, type_a, lda},
              {B, type_b, ldb},
              {C, type_c, ldc},
              1,
              CUBLAS_COMPUTE_32F,
              Batch::strided,
              3});
}
