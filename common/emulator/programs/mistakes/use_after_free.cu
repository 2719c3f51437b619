// Freed memory: used after the free, or freed again.
#include <memory>

#include "case.h"

__global__ void add_one(int* x) { x[threadIdx.x] += 1; }  // BUG memory: x
CASE(wrong_freed_before_the_launch) {
  int* x;
  check(cudaMalloc(&x, 32 * sizeof(int)));
  check(cudaMemset(x, 0, 32 * sizeof(int)));
  check(cudaFree(x));
  add_one<<<1, 32>>>(x);
}

__global__ void add_one_right(int* x) { x[threadIdx.x] += 1; }
CASE(right_freed_while_queued) {  // cudaFree waits for all queued work
  int* x;
  check(cudaMalloc(&x, 32 * sizeof(int)));
  check(cudaMemset(x, 0, 32 * sizeof(int)));
  add_one_right<<<1, 32>>>(x);
  check(cudaFree(x));
}
CASE(right_freed_and_allocated_again) {  // often at the same address
  for (int round = 0; round < 3; round++) {
    int* x;
    check(cudaMalloc(&x, 32 * sizeof(int)));
    check(cudaMemset(x, 0, 32 * sizeof(int)));
    add_one_right<<<1, 32>>>(x);
    expect_one(x, 1);
    check(cudaFree(x));
  }
}

// The old buffer is freed when a larger one takes its place, but a struct still points to it.
struct Buffer {
  float* values;
  int count;
};
__global__ void fill(Buffer buffer) {
  if (threadIdx.x < buffer.count) buffer.values[threadIdx.x] = 1;  // BUG memory: values
}
CASE(wrong_old_pointer_after_growing) {
  float *values, *larger;
  check(cudaMalloc(&values, 16 * sizeof(float)));
  const Buffer buffer = {values, 16};
  check(cudaMalloc(&larger, 64 * sizeof(float)));
  check(cudaFree(values));
  fill<<<1, 32>>>(buffer);
  check(cudaDeviceSynchronize());
  check(cudaFree(larger));
}

__global__ void fill_right(Buffer buffer) {
  if (threadIdx.x < buffer.count) buffer.values[threadIdx.x] = 1;
}
CASE(right_new_pointer_after_growing) {
  Buffer buffer = {nullptr, 16};
  check(cudaMalloc(&buffer.values, 16 * sizeof(float)));
  float* larger;
  check(cudaMalloc(&larger, 64 * sizeof(float)));
  check(cudaFree(buffer.values));
  buffer = {larger, 64};
  fill_right<<<1, 64>>>(buffer);
  expect_each(larger, 64, [](int) { return 1; });
  check(cudaFree(larger));
}

// ---- in the order of a stream

__global__ void set_to(int* out, int value) { out[threadIdx.x] = value; }  // BUG memory: out
CASE(wrong_freed_earlier_in_the_stream) {
  int* out;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMallocAsync(&out, 32 * sizeof(int), stream));
  check(cudaFreeAsync(out, stream));
  set_to<<<1, 32, 0, stream>>>(out, 3);
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
}

__global__ void set_to_right(int* out, int value) { out[threadIdx.x] = value; }
CASE(right_freed_later_in_the_stream) {
  int* out;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMallocAsync(&out, 32 * sizeof(int), stream));
  set_to_right<<<1, 32, 0, stream>>>(out, 3);
  check(cudaFreeAsync(out, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaStreamDestroy(stream));
}

// ---- the host

CASE(wrong_copied_after_free) {
  int host[8], *device;
  check(cudaMalloc(&device, sizeof(host)));
  check(cudaMemset(device, 0, sizeof(host)));
  check(cudaFree(device));
  cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost);  // BUG memory: device
}

CASE(wrong_freed_twice) {
  float *weights, *bias;
  check(cudaMalloc(&weights, 64));
  check(cudaMalloc(&bias, 64));
  cudaFree(weights);
  cudaFree(bias);
  cudaFree(weights);  // BUG memory: weights
}

CASE(wrong_freed_before_its_owner_frees_it) {
  float* weights;
  check(cudaMalloc(&weights, 64));
  const std::unique_ptr<float, decltype(&cudaFree)> owner(weights, cudaFree);  // BUG memory: weights
  cudaFree(weights);
}

CASE(wrong_free_of_the_middle) {
  float* row;
  check(cudaMalloc(&row, 64 * sizeof(float)));
  cudaFree(row + 16);  // BUG memory: row
  check(cudaFree(row));
}

CASE(wrong_free_of_host_memory) {
  float* values = static_cast<float*>(std::malloc(64));
  cudaFree(values);  // BUG memory: values
  std::free(values);
}

CASE(wrong_free_for_cuda_free) {
  float* weights;
  check(cudaMalloc(&weights, 64));
  std::free(weights);  // BUG memory: weights
}

CASE(right_free_of_null) {
  float* never = nullptr;
  check(cudaFree(never));
  check(cudaFreeHost(never));
}

CASE(right_managed_and_pinned) {
  int *managed, *pinned;
  check(cudaMallocManaged(&managed, 32 * sizeof(int)));
  check(cudaMallocHost(&pinned, 32 * sizeof(int)));
  set_to_right<<<1, 32>>>(managed, 4);
  set_to_right<<<1, 32>>>(pinned, 5);
  check(cudaDeviceSynchronize());
  expect(managed[31] == 4 && pinned[31] == 5);
  check(cudaFree(managed));
  check(cudaFreeHost(pinned));
}

CASE(right_freed_by_its_owner) {
  float* weights;
  check(cudaMalloc(&weights, 64));
  const std::unique_ptr<float, decltype(&cudaFree)> owner(weights, cudaFree);
  check(cudaMemset(owner.get(), 0, 64));
}

CASE(right_each_by_its_own_function) {
  float *device, *on_host = static_cast<float*>(std::malloc(64));
  check(cudaMalloc(&device, 64));
  check(cudaMemset(device, 0, 64));
  check(cudaMemcpy(on_host, device, 64, cudaMemcpyDeviceToHost));
  check(cudaFree(device));
  expect(on_host[15] == 0);
  std::free(on_host);
}

// Two pointers to one array: the kernel uses one of them, and then the array is freed once.
CASE(right_two_pointers_to_one_array) {
  int* whole;
  check(cudaMalloc(&whole, 64 * sizeof(int)));
  check(cudaMemset(whole, 0, 64 * sizeof(int)));
  int* half = whole + 32;
  add_one_right<<<1, 32>>>(half);
  expect_each(whole, 64, [](int i) { return i / 32; });
  check(cudaFree(whole));
}

int main(int words, char** word) { return run_cases(words, word); }
