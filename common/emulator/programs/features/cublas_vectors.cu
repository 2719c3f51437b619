// Libraries: cuBLAS, vectors and matrices (dot, axpy, nrm2, gemv, ger, geam, trsm, SetMatrix)
// Support: approximate: only float and double, with sums in double that are rounded once
#include <cublas_v2.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <vector>

static int wrong = 0;

static void expect(const char* what, bool holds) {
  if (!holds) wrong += fprintf(stderr, "%s is wrong\n", what) > 0;
}

static void expect_each(const char* what, const float* d_x, const std::vector<float>& expected) {
  std::vector<float> got(expected.size());
  cudaMemcpy(got.data(), d_x, got.size() * sizeof(float), cudaMemcpyDeviceToHost);
  bool holds = true;
  for (size_t i = 0; i < got.size(); i++) holds &= std::fabs(got[i] - expected[i]) < 1e-5f;
  expect(what, holds);
}

static float* upload(const std::vector<float>& host) {
  float* device;
  cudaMalloc(&device, host.size() * sizeof(float));
  cublasSetVector(int(host.size()), sizeof(float), host.data(), 1, device, 1);
  return device;
}

static void check_vectors(cublasHandle_t handle) {
  float *x = upload({1, -2, 3, -4, 5, -6}), *y = upload({1, 1, 1, 1, 1, 1}), result, two = 2;
  int place;
  cublasSdot(handle, 6, x, 1, y, 1, &result);
  expect("dot", result == -3);
  cublasSdot(handle, 3, x, 2, y, 1, &result);
  expect("dot of every second element", result == 9);
  cublasSdot(handle, 2, x, -1, x + 2, 1, &result);  // the first vector from its end
  expect("dot in the other direction", result == -2 * 3 + 1 * -4);
  cublasSasum(handle, 6, x, 1, &result);
  expect("asum", result == 21);
  cublasSnrm2(handle, 6, x, 1, &result);
  expect("nrm2", std::fabs(result - std::sqrt(91.0f)) < 1e-5f);
  cublasIsamax(handle, 6, x, 1, &place);
  expect("amax", place == 6);
  cublasIsamin(handle, 6, x, 1, &place);
  expect("amin", place == 1);
  cublasSaxpy(handle, 6, &two, x, 1, y, 1);
  expect_each("axpy", y, {3, -3, 7, -7, 11, -11});
  cublasSscal(handle, 3, &two, y, 2);
  expect_each("scal", y, {6, -3, 14, -7, 22, -11});
  cublasSswap(handle, 2, x, 1, y, 1);
  expect_each("swap", x, {6, -3, 3, -4, 5, -6});
  cublasScopy(handle, 3, x, 2, y, 1);
  expect_each("copy", y, {6, 3, 5, -7, 22, -11});

  float* d_result;  // the next work uses it: nothing waits for the host
  cudaMalloc(&d_result, sizeof(float));
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasSdot(handle, 2, x, 1, y, 1, d_result);
  cublasSscal(handle, 2, d_result, x, 1);
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_HOST);
  expect_each("scal by a result on the device", x, {6 * 27, -3 * 27, 3, -4, 5, -6});
  cudaFree(x);
  cudaFree(y);
  cudaFree(d_result);
}

static void check_matrices(cublasHandle_t handle) {
  // A = [[1, 3, 5], [2, 4, 6]], column by column
  float *a = upload({1, 2, 3, 4, 5, 6}), *x = upload({1, 1, 2}), *y, one = 1, two = 2, zero = 0;
  cudaMalloc(&y, 3 * sizeof(float));
  cublasSgemv(handle, CUBLAS_OP_N, 2, 3, &two, a, 2, x, 1, &zero, y, 1);  // y is uninitialised, and beta is 0
  expect_each("gemv", y, {28, 36});
  cublasSgemv(handle, CUBLAS_OP_T, 2, 3, &one, a, 2, x, 2, &zero, y, 1);
  expect_each("gemv of the transpose", y, {5, 11, 17});
  cublasSger(handle, 2, 3, &one, x, 2, y, 1, a, 2);
  expect_each("ger", a, {1 + 5, 2 + 10, 3 + 11, 4 + 22, 5 + 17, 6 + 34});
  float* b;
  cudaMalloc(&b, 6 * sizeof(float));
  cublasSgeam(handle, CUBLAS_OP_T, CUBLAS_OP_T, 3, 2, &one, a, 2, &zero, a, 2, b, 3);
  expect_each("geam transposes", b, {6, 14, 22, 12, 26, 40});
  cudaFree(b);

  // A lower triangle [[2, 0], [1, 4]]; the upper part is not read.
  float *triangle, column[] = {2, 1}, last = 4;
  cudaMalloc(&triangle, 4 * sizeof(float));
  cudaMemcpy(triangle, column, sizeof(column), cudaMemcpyHostToDevice);
  cudaMemcpy(triangle + 3, &last, sizeof(last), cudaMemcpyHostToDevice);
  float* right = upload({2, 9, 4, 10});
  cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_N, CUBLAS_DIAG_NON_UNIT, 2, 2, &one,
              triangle, 2, right, 2);
  expect_each("trsm", right, {1, 2, 2, 2});
  cublasStrsm(handle, CUBLAS_SIDE_RIGHT, CUBLAS_FILL_MODE_LOWER, CUBLAS_OP_T, CUBLAS_DIAG_NON_UNIT, 2, 2,
              &two, triangle, 2, right, 2);  // X * A^T = 2 * B, row by row
  expect_each("trsm from the right", right, {1, 2, 0.75f, 0.5f});
  for (float* memory : {a, x, y, triangle, right}) cudaFree(memory);
}

static void check_copies() {
  // The two middle rows of a matrix of four rows, and back into every second place.
  std::vector<float> host = {0, 1, 2, 3, 10, 11, 12, 13, 20, 21, 22, 23}, back(6, -1);
  float* d_part;
  cudaMalloc(&d_part, 6 * sizeof(float));
  expect("SetMatrix", cublasSetMatrix(2, 3, sizeof(float), &host[1], 4, d_part, 2) == CUBLAS_STATUS_SUCCESS);
  expect_each("SetMatrix", d_part, {1, 2, 11, 12, 21, 22});
  cublasGetVector(3, sizeof(float), d_part, 2, back.data(), 2);
  expect("GetVector", back == std::vector<float>{1, -1, 11, -1, 21, -1});
  expect("a leading dimension below the rows",
         cublasSetMatrix(2, 3, sizeof(float), &host[1], 1, d_part, 2) == CUBLAS_STATUS_INVALID_VALUE);
  cudaFree(d_part);
}

static void check_streams(cublasHandle_t handle) {
  float *x = upload(std::vector<float>(1000, 1)), *result, one = 1;
  cudaMallocHost(&result, 1000 * sizeof(float));
  cudaStream_t stream, given;
  cudaStreamCreate(&stream);
  cublasSetStream(handle, stream);
  cublasGetStream(handle, &given);
  expect("GetStream", given == stream);
  cublasSaxpy(handle, 1000, &one, x, 1, x, 1);
  cublasGetVectorAsync(1000, sizeof(float), x, 1, result, 1, stream);
  cudaStreamSynchronize(stream);
  expect("work in a stream", result[0] == 2 && result[999] == 2);

  cudaGraph_t graph;
  cudaGraphExec_t executable;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cublasSaxpy(handle, 1000, &one, x, 1, x, 1);
  cublasSscal(handle, 500, &one, x, 1);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&executable, graph, 0);
  cudaGraphLaunch(executable, stream);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  expect_each("work in a graph", x, std::vector<float>(1000, 8));
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cublasSetStream(handle, nullptr);
  cudaStreamDestroy(stream);
  cudaFreeHost(result);
  cudaFree(x);
}

int main() {
  cublasHandle_t handle;
  int version;
  float one = 1;
  expect("a handle that does not exist",
         cublasSscal(nullptr, 0, &one, &one, 1) == CUBLAS_STATUS_NOT_INITIALIZED);
  expect("cublasCreate", cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  expect("the version", cublasGetVersion(handle, &version) == CUBLAS_STATUS_SUCCESS && version >= 120000);
  expect("the name of a status",
         !strcmp(cublasGetStatusName(CUBLAS_STATUS_INVALID_VALUE), "CUBLAS_STATUS_INVALID_VALUE"));
  check_vectors(handle);
  check_matrices(handle);
  check_copies();
  check_streams(handle);
  cublasDestroy(handle);
  return wrong != 0;
}
