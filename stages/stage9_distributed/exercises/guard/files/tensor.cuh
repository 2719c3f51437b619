// A small model of torch's CUDA tensors: memory of one device, each device's current stream, and a kernel.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <memory>
#include <stdexcept>

inline void check(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(cudaGetErrorString(error));
}

struct Tensor {
  std::shared_ptr<float> memory;
  int64_t count;
  int device;
};

inline int current_device() {
  int device;
  check(cudaGetDevice(&device));
  return device;
}

// Uninitialised memory of the current device. Throws std::runtime_error if there is not enough.
inline Tensor allocate(int64_t count) {
  float* memory;
  check(cudaMalloc(&memory, count * sizeof(float)));
  return {{memory, [](float* pointer) { cudaFree(pointer); }}, count, current_device()};
}

// The stream in which the work of a device runs. Streams of two devices do not wait for each other.
inline cudaStream_t current_stream(int device) {
  static cudaStream_t streams[2] = {};
  const int current = current_device();
  if (!streams[device]) {
    check(cudaSetDevice(device));
    check(cudaStreamCreateWithFlags(&streams[device], cudaStreamNonBlocking));
    check(cudaSetDevice(current));
  }
  return streams[device];
}

__device__ int launches;  // each device has its own

// One thread per element.
__global__ void scale_kernel(float* out, const float* x, float factor, int64_t count) {
  const int64_t k = blockIdx.x * int64_t(blockDim.x) + threadIdx.x;
  if (k < count) out[k] = factor * x[k];
  if (k == 0) launches++;
}
