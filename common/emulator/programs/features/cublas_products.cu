// Libraries: cuBLAS, products of matrices (gemm, gemmEx, batches) of all usual types
// Support: approximate: sums are rounded in another order, those of half once, and TF32 is not used
#include <cublas_v2.h>
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include <cmath>
#include <cstdio>
#include <vector>

constexpr int m = 19, n = 23, k = 31, lda = 36, ldb = 32, ldc = 21, batch = 3;
constexpr size_t stride_a = lda * 31, stride_b = ldb * 31, stride_c = ldc * n;

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

template <typename T>
T* upload(const std::vector<T>& host) {
  T* device;
  cudaMalloc(&device, host.size() * sizeof(T));
  cudaMemcpy(device, host.data(), host.size() * sizeof(T), cudaMemcpyHostToDevice);
  return device;
}

// Small multiples of a quarter, which all types represent exactly (those of 8 bits as whole numbers).
template <typename T>
std::vector<T> numbers(size_t count, int seed, float unit = 0.25f) {
  std::vector<T> all;
  for (size_t i = 0; i < count; i++) all.push_back(T(unit * (int(i * 7 + seed) % 9 - 4)));
  return all;
}

template <typename T>
double at(const std::vector<T>& x, cublasOperation_t op, int leading, int row, int column) {
  return double(
      float(op == CUBLAS_OP_N ? x[size_t(column) * leading + row] : x[size_t(row) * leading + column]));
}

// Compares each matrix of a batch with 2 * op(A) * op(B) + 3 * C.
template <typename In, typename Out>
void expect_products(const char* what, cublasOperation_t op_a, cublasOperation_t op_b,
                     const std::vector<In>& a, const std::vector<In>& b, const std::vector<Out>& before,
                     const Out* d_c, int matrices, double tolerance) {
  std::vector<Out> after(before.size());
  cudaMemcpy(after.data(), d_c, after.size() * sizeof(Out), cudaMemcpyDeviceToHost);
  bool holds = true;
  for (int p = 0; p < matrices; p++) {
    const std::vector<In> a_of(a.begin() + p * stride_a, a.begin() + (p + 1) * stride_a);
    const std::vector<In> b_of(b.begin() + p * stride_b, b.begin() + (p + 1) * stride_b);
    for (int j = 0; j < n; j++)
      for (int i = 0; i < ldc; i++) {
        const size_t place = p * stride_c + size_t(j) * ldc + i;
        double sum = 3 * double(float(before[place]));
        for (int q = 0; q < k; q++) sum += 2 * at(a_of, op_a, lda, i, q) * at(b_of, op_b, ldb, q, j);
        const double expected = i < m ? sum : double(float(before[place]));  // the rest of a column stays
        holds &= std::fabs(double(float(after[place])) - expected) <= tolerance * (1 + std::fabs(expected));
      }
  }
  expect(what, holds);
}

template <typename In, typename Out, typename Scale>
void check_ex(cublasHandle_t handle, const char* what, cudaDataType type, cudaDataType type_c,
              cublasComputeType_t compute, double tolerance, float unit = 0.25f) {
  const auto a = numbers<In>(batch * stride_a, 1, unit), b = numbers<In>(batch * stride_b, 2, unit);
  const auto c = numbers<Out>(batch * stride_c, 3, unit);
  In *d_a = upload(a), *d_b = upload(b);
  Out* d_c = upload(c);
  const Scale two(2), three(3);
  for (cublasOperation_t op_a : {CUBLAS_OP_N, CUBLAS_OP_T})
    for (cublasOperation_t op_b : {CUBLAS_OP_N, CUBLAS_OP_T}) {
      cudaMemcpy(d_c, c.data(), c.size() * sizeof(Out), cudaMemcpyHostToDevice);
      expect(what, cublasGemmEx(handle, op_a, op_b, m, n, k, &two, d_a, type, lda, d_b, type, ldb, &three,
                                d_c, type_c, ldc, compute, CUBLAS_GEMM_DEFAULT) == CUBLAS_STATUS_SUCCESS);
      expect_products(what, op_a, op_b, a, b, c, d_c, 1, tolerance);
    }
  cudaMemcpy(d_c, c.data(), c.size() * sizeof(Out), cudaMemcpyHostToDevice);
  cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, &two, d_a, type, lda, stride_a, d_b,
                             type, ldb, stride_b, &three, d_c, type_c, ldc, stride_c, batch, compute,
                             CUBLAS_GEMM_DEFAULT);
  expect_products(what, CUBLAS_OP_N, CUBLAS_OP_T, a, b, c, d_c, batch, tolerance);
  cudaFree(d_a);
  cudaFree(d_b);
  cudaFree(d_c);
}

// The functions of one type: a single product, and batches by a stride and by pointers.
void check_single_precision(cublasHandle_t handle) {
  const auto a = numbers<float>(batch * stride_a, 4), b = numbers<float>(batch * stride_b, 5);
  const auto c = numbers<float>(batch * stride_c, 6);
  float *d_a = upload(a), *d_b = upload(b), *d_c = upload(c);
  const auto reset = [&] { cudaMemcpy(d_c, c.data(), c.size() * sizeof(float), cudaMemcpyHostToDevice); };
  const float two = 2, three = 3;
  cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, d_a, lda, d_b, ldb, &three, d_c, ldc);
  expect_products("cublasSgemm", CUBLAS_OP_N, CUBLAS_OP_N, a, b, c, d_c, 1, 1e-6);

  reset();
  cublasSgemmStridedBatched(handle, CUBLAS_OP_T, CUBLAS_OP_N, m, n, k, &two, d_a, lda, stride_a, d_b, ldb,
                            stride_b, &three, d_c, ldc, stride_c, batch);
  expect_products("cublasSgemmStridedBatched", CUBLAS_OP_T, CUBLAS_OP_N, a, b, c, d_c, batch, 1e-6);

  reset();
  std::vector<const float*> a_of, b_of;
  std::vector<float*> c_of;
  for (int p = 0; p < batch; p++) {
    a_of.push_back(d_a + p * stride_a);
    b_of.push_back(d_b + p * stride_b);
    c_of.push_back(d_c + p * stride_c);
  }
  const float **d_a_of = upload(a_of), **d_b_of = upload(b_of);
  float** d_c_of = upload(c_of);
  float* scalars = upload(std::vector<float>{2, 3});
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasSgemmBatched(handle, CUBLAS_OP_N, CUBLAS_OP_T, m, n, k, scalars, d_a_of, lda, d_b_of, ldb,
                     scalars + 1, d_c_of, ldc, batch);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
  expect_products("cublasSgemmBatched", CUBLAS_OP_N, CUBLAS_OP_T, a, b, c, d_c, batch, 1e-6);

  expect("a leading dimension below the rows",
         cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, n, k, &two, d_a, m - 1, d_b, ldb, &three, d_c,
                     ldc) == CUBLAS_STATUS_INVALID_VALUE);
  expect("a negative size", cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, -1, k, &two, d_a, lda, d_b, ldb,
                                        &three, d_c, ldc) == CUBLAS_STATUS_INVALID_VALUE);
  for (void* memory :
       {(void*)d_a, (void*)d_b, (void*)d_c, (void*)d_a_of, (void*)d_b_of, (void*)d_c_of, (void*)scalars})
    cudaFree(memory);
}

void check_complex(cublasHandle_t handle) {
  // (1 + 2i) * conj(3 + 4i) = 11 + 2i
  cuDoubleComplex *a = upload<cuDoubleComplex>({{1, 2}}), *b = upload<cuDoubleComplex>({{3, 4}}), *c, result;
  cudaMalloc(&c, sizeof(result));
  const cuDoubleComplex one = {1, 0}, zero = {0, 0};  // with beta = 0, C may be uninitialised
  cublasZgemm(handle, CUBLAS_OP_N, CUBLAS_OP_C, 1, 1, 1, &one, a, 1, b, 1, &zero, c, 1);
  cudaMemcpy(&result, c, sizeof(result), cudaMemcpyDeviceToHost);
  expect("cublasZgemm", result.x == 11 && result.y == 2);
  cudaFree(a);
  cudaFree(b);
  cudaFree(c);
}

int main() {
  cublasHandle_t handle;
  expect("cublasCreate", cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  check_single_precision(handle);
  check_complex(handle);
  check_ex<float, float, float>(handle, "float", CUDA_R_32F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-6);
  check_ex<double, double, double>(handle, "double", CUDA_R_64F, CUDA_R_64F, CUBLAS_COMPUTE_64F, 1e-7);
  check_ex<__half, __half, float>(handle, "half", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_32F, 1e-3);
  check_ex<__half, __half, __half>(handle, "half sums", CUDA_R_16F, CUDA_R_16F, CUBLAS_COMPUTE_16F, 1e-2);
  check_ex<__half, float, float>(handle, "half to float", CUDA_R_16F, CUDA_R_32F, CUBLAS_COMPUTE_32F, 1e-6);
  check_ex<__nv_bfloat16, __nv_bfloat16, float>(handle, "bfloat16", CUDA_R_16BF, CUDA_R_16BF,
                                                CUBLAS_COMPUTE_32F, 1e-2);
  check_ex<signed char, int, int>(handle, "int8", CUDA_R_8I, CUDA_R_32I, CUBLAS_COMPUTE_32I, 0, 1);
  expect("cublasSetStream", cublasSetStream(handle, stream) == CUBLAS_STATUS_SUCCESS);
  cublasDestroy(handle);
  cudaStreamDestroy(stream);
  return wrong != 0;
}
