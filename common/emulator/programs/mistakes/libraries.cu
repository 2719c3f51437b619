// Operands of library calls: memory that is too small, uninitialised, freed, or not on the device; and
// results that are used before the call has run.
#include <cublas_v2.h>
#include <cufft.h>
#include <curand.h>
#include <curand_kernel.h>

#include "case.h"

static const float one = 1, zero = 0;
static const cublasOperation_t N = CUBLAS_OP_N, T = CUBLAS_OP_T;

static cublasHandle_t new_handle() {
  cublasHandle_t handle;
  expect(cublasCreate(&handle) == CUBLAS_STATUS_SUCCESS);
  return handle;
}

CASE(wrong_matrix_of_fewer_columns) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(8 * 7), *B = numbers<float>(8 * 8), *C = unwritten<float>(8 * 8);
  cublasSgemm(handle, N, N, 8, 8, 8, &one, A, 8, B, 8, &zero, C, 8);  // BUG memory: A
  cublasDestroy(handle);
}

CASE(wrong_leading_dimension_of_the_padded_matrix) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(8 * 8), *B = numbers<float>(8 * 8), *C = unwritten<float>(8 * 8);
  cublasSgemm(handle, N, N, 8, 8, 8, &one, A, 8, B, 8, &zero, C, 16);  // BUG memory: C
  cublasDestroy(handle);
}

CASE(wrong_rows_and_columns_exchanged) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(4 * 9), *x = numbers<float>(9), *y = unwritten<float>(4);
  cublasSgemv(handle, N, 9, 4, &one, A, 9, x, 1, &zero, y, 1);  // BUG memory: y
  cublasDestroy(handle);
}

CASE(wrong_operand_on_the_host) {
  cublasHandle_t handle = new_handle();
  float host[16] = {}, *y = zeros<float>(16);
  cublasSaxpy(handle, 16, &one, host, 1, y, 1);  // BUG memory: host
  cublasDestroy(handle);
}

CASE(wrong_factor_on_the_host_in_device_mode) {
  cublasHandle_t handle = new_handle();
  float *x = numbers<float>(16), *y = zeros<float>(16), two = 2;
  cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE);
  cublasSaxpy(handle, 16, &two, x, 1, y, 1);  // BUG memory: alpha
  cublasDestroy(handle);
}

CASE(wrong_result_on_the_device_in_host_mode) {
  cublasHandle_t handle = new_handle();
  float *x = numbers<float>(16), *sum = unwritten<float>(1);
  cublasSasum(handle, 16, x, 1, sum);  // BUG memory: array
  cublasDestroy(handle);
}

CASE(wrong_batch_of_host_pointers) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(16), *B = numbers<float>(16), *C = unwritten<float>(16);
  const float *As[] = {A}, *Bs[] = {B};
  float** d_C = filled<float*>(1, [=](int) { return C; });
  const float** d_B = filled<const float*>(1, [=](int) { return Bs[0]; });
  cublasSgemmBatched(handle, N, N, 4, 4, 4, &one, As, 4, d_B, 4, &zero, d_C, 4, 1);  // BUG memory: As
  cublasDestroy(handle);
}

CASE(wrong_operand_after_it_was_freed) {
  cublasHandle_t handle = new_handle();
  float *x, *y = zeros<float>(16);
  check(cudaMalloc(&x, 64));
  check(cudaMemset(x, 0, 64));
  check(cudaFree(x));
  cublasSaxpy(handle, 16, &one, x, 1, y, 1);  // BUG memory: x
  cublasDestroy(handle);
}

__constant__ float table[16];
CASE(wrong_result_in_constant_memory) {
  cublasHandle_t handle = new_handle();
  float *x = numbers<float>(16), *y;
  check(cudaGetSymbolAddress(reinterpret_cast<void**>(&y), table));
  cublasScopy(handle, 16, x, 1, y, 1);  // BUG memory: y
  cublasDestroy(handle);
}

CASE(wrong_sum_with_an_uninitialised_matrix) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(9), *B = numbers<float>(9), *C = unwritten<float>(9);
  cublasSgemm(handle, N, N, 3, 3, 3, &one, A, 3, B, 3, &one, C, 3);  // BUG initialisation: C
  cublasDestroy(handle);
}

CASE(wrong_vector_of_which_half_is_uninitialised) {
  cublasHandle_t handle = new_handle();
  float *x = unwritten<float>(16), result;
  check(cudaMemset(x, 0, 32));
  cublasSasum(handle, 16, x, 1, &result);  // BUG initialisation: x
  cublasDestroy(handle);
}

CASE(wrong_parts_of_a_matrix_that_overlap) {
  cublasHandle_t handle = new_handle();
  cudaStream_t streams[2];
  float *A = numbers<float>(16), *C = zeros<float>(16);
  for (int part = 0; part < 2; part++) {  // three rows each
    check(cudaStreamCreate(&streams[part]));
    cublasSetStream(handle, streams[part]);
    cublasSgeam(handle, N, N, 3, 4, &one, A + part, 4, &one, C + part, 4, C + part, 4);  // BUG streams: array
  }
  for (int part = 1; part >= 0; part--) check(cudaStreamSynchronize(streams[part]));
  cublasDestroy(handle);
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
}

CASE(wrong_order_of_two_streams) {
  cublasHandle_t handle = new_handle();
  cudaStream_t first, second;
  check(cudaStreamCreate(&first));
  check(cudaStreamCreate(&second));
  float *x = zeros<float>(16), *y = numbers<float>(16), *result;
  check(cudaMallocHost(&result, 64));
  cublasSetStream(handle, first);
  cublasSaxpy(handle, 16, &one, y, 1, x, 1);
  cudaMemcpyAsync(result, x, 64, cudaMemcpyDeviceToHost, second);  // BUG streams: cublasSaxpy
  cudaStreamSynchronize(second);
  cudaDeviceSynchronize();
  cublasDestroy(handle);
  check(cudaStreamDestroy(first));
  check(cudaStreamDestroy(second));
  check(cudaFreeHost(result));
}

CASE(wrong_real_transform_in_place_without_padding) {
  cufftHandle plan;
  expect(!cufftPlan1d(&plan, 64, CUFFT_R2C, 1));
  float* data = numbers<float>(64);                                 // the result has 33 complex numbers
  cufftExecR2C(plan, data, reinterpret_cast<cufftComplex*>(data));  // BUG memory: data
  cufftDestroy(plan);
}

CASE(wrong_transform_of_uninitialised_imaginary_parts) {
  cufftHandle plan;
  expect(!cufftPlan1d(&plan, 16, CUFFT_C2C, 1));
  float2* data = unwritten<float2>(16);
  float real[16] = {};
  check(cudaMemcpy2D(data, sizeof(float2), real, sizeof(float), sizeof(float), 16, cudaMemcpyHostToDevice));
  cufftExecC2C(plan, data, data, CUFFT_FORWARD);  // BUG initialisation: data
  cufftDestroy(plan);
}

CASE(wrong_number_of_random_numbers) {
  curandGenerator_t generator;
  expect(!curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  float* x = unwritten<float>(100);
  curandGenerateUniform(generator, x, 100 * sizeof(float));  // BUG memory: x
  curandDestroyGenerator(generator);
}

CASE(wrong_random_numbers_to_the_host) {
  curandGenerator_t generator;
  expect(!curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  float host[16];
  curandGenerateUniform(generator, host, 16);  // BUG memory: host
  curandDestroyGenerator(generator);
}

__global__ void draw(curandState* states, float* x) {
  x[threadIdx.x] = curand_uniform(&states[threadIdx.x]);  // BUG initialisation: states
}

CASE(wrong_random_state_that_no_kernel_has_started) {
  curandState* states = unwritten<curandState>(1);
  draw<<<1, 1>>>(states, unwritten<float>(1));
  cudaDeviceSynchronize();
}

CASE(right_padded_matrices) {
  cublasHandle_t handle = new_handle();
  // The last columns end where the memory ends, before the padding.
  float *A = numbers<float>(16 * 7 + 8), *B = numbers<float>(8 * 8), *C = unwritten<float>(12 * 7 + 8);
  expect(!cublasSgemm(handle, N, N, 8, 8, 8, &one, A, 16, B, 8, &zero, C, 12));
  cublasDestroy(handle);
}

CASE(right_transposed) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(5 * 3), *B = numbers<float>(4 * 5), *C = unwritten<float>(3 * 4);
  expect(!cublasSgemm(handle, T, T, 3, 4, 5, &one, A, 5, B, 4, &zero, C, 3));
  cublasDestroy(handle);
}

CASE(right_every_second_element) {
  cublasHandle_t handle = new_handle();
  float *x = numbers<float>(31), *y = zeros<float>(16);
  expect(!cublasSaxpy(handle, 16, &one, x, 2, y, 1));
  expect_each(y, 16, [](int i) { return 2 * i; });
  cublasDestroy(handle);
}

CASE(right_factor_zero_reads_nothing) {
  cublasHandle_t handle = new_handle();
  float *A = unwritten<float>(16), *B = unwritten<float>(16), *C = unwritten<float>(16);
  expect(!cublasSgemm(handle, N, N, 4, 4, 4, &zero, A, 4, B, 4, &zero, C, 4));
  expect_each(C, 16, [](int) { return 0; });
  cublasDestroy(handle);
}

CASE(right_managed_memory) {
  cublasHandle_t handle = new_handle();
  float *x, *y = zeros<float>(16);
  check(cudaMallocManaged(&x, 64));
  for (int i = 0; i < 16; i++) x[i] = float(i);
  expect(!cublasSaxpy(handle, 16, &one, x, 1, y, 1));
  expect_each(y, 16, [](int i) { return i; });
  check(cudaFree(x));
  cublasDestroy(handle);
}

CASE(right_result_that_the_host_gets_at_once) {
  cublasHandle_t handle = new_handle();
  float *x = numbers<float>(4), result;
  expect(!cublasSasum(handle, 4, x, 1, &result));
  expect(result == 6);
  cublasDestroy(handle);
}

__global__ void twice(float* x) { x[threadIdx.x] *= 2; }

CASE(right_factor_and_result_on_the_device) {
  cublasHandle_t handle = new_handle();
  float *x = numbers<float>(16), *sum = unwritten<float>(1);
  expect(!cublasSetPointerMode(handle, CUBLAS_POINTER_MODE_DEVICE));
  expect(!cublasSasum(handle, 16, x, 1, sum));
  expect(!cublasSscal(handle, 16, sum, x, 1));
  expect_each(x, 16, [](int i) { return i * 120; });
  cublasDestroy(handle);
}

CASE(right_matrix_to_the_device_and_back) {
  float host[6] = {0, 1, 2, 3, 4, 5}, back[4] = {}, *matrix = unwritten<float>(4);
  expect(!cublasSetMatrix(2, 2, sizeof(float), host + 1, 3, matrix, 2));  // rows 1 and 2 of three
  expect(!cublasGetMatrix(2, 2, sizeof(float), matrix, 2, back, 2));
  expect(back[0] == 1 && back[1] == 2 && back[2] == 4 && back[3] == 5);
}

CASE(right_kernels_and_calls_in_one_stream) {
  cublasHandle_t handle = new_handle();
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  float *x = numbers<float>(16), *y = zeros<float>(16);
  cublasSetStream(handle, stream);
  twice<<<1, 16, 0, stream>>>(x);
  expect(!cublasSaxpy(handle, 16, &one, x, 1, y, 1));
  twice<<<1, 16, 0, stream>>>(y);
  check(cudaStreamSynchronize(stream));
  expect_each(y, 16, [](int i) { return 4 * i; });
  cublasDestroy(handle);
  check(cudaStreamDestroy(stream));
}

CASE(right_parts_of_a_matrix_in_two_streams) {
  cublasHandle_t handle = new_handle();
  cudaStream_t streams[2];
  float *A = numbers<float>(16), *C = unwritten<float>(16),
        *unit = filled<float>(4, [](int i) { return i % 3 == 0; });
  for (int part = 0; part < 2; part++) {  // two rows each
    check(cudaStreamCreate(&streams[part]));
    cublasSetStream(handle, streams[part]);
    expect(!cublasSgemm(handle, N, N, 2, 4, 2, &one, unit, 2, A + 2 * part, 4, &zero, C + 2 * part, 4));
  }
  for (int part = 1; part >= 0; part--) check(cudaStreamSynchronize(streams[part]));
  expect_each(C, 16, [](int i) { return i; });
  cublasDestroy(handle);
  for (cudaStream_t stream : streams) check(cudaStreamDestroy(stream));
}

CASE(right_event_between_two_streams) {
  cublasHandle_t handle = new_handle();
  cudaStream_t first, second;
  cudaEvent_t done;
  check(cudaStreamCreate(&first));
  check(cudaStreamCreate(&second));
  check(cudaEventCreate(&done));
  float *x = zeros<float>(16), *y = numbers<float>(16), *result;
  check(cudaMallocHost(&result, 64));
  cublasSetStream(handle, first);
  expect(!cublasSaxpy(handle, 16, &one, y, 1, x, 1));
  check(cudaEventRecord(done, first));
  check(cudaStreamWaitEvent(second, done, 0));
  check(cudaMemcpyAsync(result, x, 64, cudaMemcpyDeviceToHost, second));
  check(cudaStreamSynchronize(second));
  expect(result[15] == 15);
  cublasDestroy(handle);
  check(cudaEventDestroy(done));
  check(cudaStreamDestroy(first));
  check(cudaStreamDestroy(second));
  check(cudaFreeHost(result));
}

CASE(right_the_part_of_a_triangle_that_is_read) {
  cublasHandle_t handle = new_handle();
  float *A = unwritten<float>(4), *B = numbers<float>(2);
  check(cudaMemset(A, 0, 8));  // the first column; its diagonal counts as ones
  expect(!cublasStrsm(handle, CUBLAS_SIDE_LEFT, CUBLAS_FILL_MODE_LOWER, N, CUBLAS_DIAG_UNIT, 2, 1, &one, A, 2,
                      B, 2));
  expect_each(B, 2, [](int i) { return i; });
  cublasDestroy(handle);
}

CASE(right_real_transform_in_place_with_padding) {
  cufftHandle plan;
  expect(!cufftPlan1d(&plan, 64, CUFFT_R2C, 1));
  float* data = unwritten<float>(66);
  check(cudaMemset(data, 0, 64 * sizeof(float)));  // the padding is not read
  expect(!cufftExecR2C(plan, data, reinterpret_cast<cufftComplex*>(data)));
  expect_each(data, 66, [](int) { return 0; });
  cufftDestroy(plan);
}

CASE(right_random_numbers_to_managed_memory) {
  curandGenerator_t generator;
  expect(!curandCreateGenerator(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  float* x;
  check(cudaMallocManaged(&x, 64));
  expect(!curandGenerateUniform(generator, x, 16));
  check(cudaDeviceSynchronize());
  for (int i = 0; i < 16; i++) expect(x[i] > 0 && x[i] <= 1);
  check(cudaFree(x));
  curandDestroyGenerator(generator);
}

__global__ void start_and_draw(curandState* states, float* x, int count) {
  curand_init(1, threadIdx.x, 0, &states[threadIdx.x]);
  curandState state = states[threadIdx.x];
  for (int i = 0; i < count; i++) x[i * blockDim.x + threadIdx.x] = curand_normal(&state);
  states[threadIdx.x] = state;
}

CASE(right_random_states) {
  curandState* states = unwritten<curandState>(32);
  float* x = unwritten<float>(96);
  start_and_draw<<<1, 32>>>(states, x, 3);
  start_and_draw<<<1, 32>>>(states, x, 3);
  check(cudaDeviceSynchronize());
}

CASE(right_transform_of_one_column) {
  cufftHandle plan;
  int size[] = {8};
  expect(!cufftPlanMany(&plan, 1, size, size, 3, 1, size, 3, 1, CUFFT_C2C, 1));
  float2* data = unwritten<float2>(22);  // the last element of the column is the last of the memory
  check(cudaMemset2D(data, 3 * sizeof(float2), 0, sizeof(float2), 8));
  expect(!cufftExecC2C(plan, data, data, CUFFT_FORWARD));
  check(cudaDeviceSynchronize());
  cufftDestroy(plan);
}

CASE(right_random_numbers_of_a_generator_on_the_host) {
  curandGenerator_t generator;
  expect(!curandCreateGeneratorHost(&generator, CURAND_RNG_PSEUDO_DEFAULT));
  float host[16];
  expect(!curandGenerateUniform(generator, host, 16));
  for (float x : host) expect(x > 0 && x <= 1);
  curandDestroyGenerator(generator);
}

CASE(right_batch_of_device_pointers) {
  cublasHandle_t handle = new_handle();
  float *A = numbers<float>(9), *C = unwritten<float>(9);
  const float** d_A = filled<const float*>(1, [=](int) { return A; });
  float** d_C = filled<float*>(1, [=](int) { return C; });
  expect(!cublasSgemmBatched(handle, N, T, 3, 3, 3, &one, d_A, 3, d_A, 3, &zero, d_C, 3, 1));
  expect_one(C, 0 * 0 + 3 * 3 + 6 * 6);
  cublasDestroy(handle);
}

int main(int words, char** word) { return run_cases(words, word); }
