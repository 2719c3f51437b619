// Leaks: memory that is never freed.
#include "case.h"

CASE(wrong_never_freed) {
  float *d_x, *d_y;
  check(cudaMalloc(&d_x, 1024));
  check(cudaMalloc(&d_y, 4096));  // BUG leaks: d_y
  check(cudaFree(d_x));
}

CASE(wrong_pointer_overwritten) {
  int* d_batch = nullptr;
  for (int epoch = 0; epoch < 3; epoch++) {
    check(cudaMalloc(&d_batch, 256));  // BUG leaks: d_batch
    check(cudaMemset(d_batch, 0, 256));
  }
  check(cudaFree(d_batch));
}

static cudaError_t train(int steps) {
  float* d_state;
  if (cudaError_t error = cudaMalloc(&d_state, 512)) return error;  // BUG leaks: d_state
  if (steps == 0) return cudaSuccess;
  return cudaFree(d_state);
}
CASE(wrong_early_return) {
  check(train(1));
  check(train(0));
}

CASE(wrong_managed_never_freed) {
  double* shared;
  check(cudaMallocManaged(&shared, 800));  // BUG leaks: shared
  shared[99] = 1;
}

CASE(wrong_pinned_never_freed) {
  double* staging;
  check(cudaMallocHost(&staging, 800));  // BUG leaks: staging
  staging[99] = 1;
}

static void release(float* d_x) { check(cudaFree(d_x)); }
CASE(right_freed_elsewhere) {
  float* d_x;
  check(cudaMalloc(&d_x, 1024));
  release(d_x);
}

CASE(right_freed_in_a_loop) {
  float* d_layers[4];
  for (float*& d_layer : d_layers) check(cudaMalloc(&d_layer, 128));
  for (float* d_layer : d_layers) check(cudaFree(d_layer));
}

CASE(wrong_left_to_the_reset) {
  float* d_x;
  check(cudaMalloc(&d_x, 1024));  // BUG leaks: d_x
  check(cudaDeviceReset());
}

CASE(right_reset_after_the_last_free) {
  float* d_x;
  check(cudaMalloc(&d_x, 1024));
  check(cudaFree(d_x));
  check(cudaDeviceReset());
}

CASE(right_nothing_allocated) {
  float* d_x;
  check(cudaMalloc(&d_x, 0));
}

struct Array {
  explicit Array(size_t bytes) { check(cudaMalloc(&memory, bytes)); }
  ~Array() { cudaFree(memory); }
  Array(const Array&) = delete;
  float* memory;
};
CASE(right_freed_by_a_destructor) {
  const Array a(100), b(200);
  check(cudaMemset(a.memory, 0, 100));
  check(cudaMemset(b.memory, 0, 200));
}

CASE(right_freed_by_its_own_function) {
  int *managed, *pinned, *mapped;
  check(cudaMallocManaged(&managed, 64));
  check(cudaMallocHost(&pinned, 64));
  check(cudaHostAlloc(&mapped, 64, cudaHostAllocMapped));
  check(cudaFree(managed));
  check(cudaFreeHost(pinned));
  check(cudaFreeHost(mapped));
}

int main(int words, char** word) { return run_cases(words, word); }
