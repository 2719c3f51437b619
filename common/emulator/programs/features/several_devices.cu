// Runtime API: several devices (EMULATOR_DEVICES=2), their streams and variables, peer access
// Support: approximate: the devices are alike, and memory pools cannot be shared between them
#include <cuda_runtime.h>

#include <cstdio>

constexpr int count = 256;

__device__ int launches;

__global__ void fill(int* x, int value) {
  x[threadIdx.x] = value;
  if (threadIdx.x == 0) launches++;
}

__global__ void add(int* x, const int* other) { x[threadIdx.x] += other[threadIdx.x]; }

static int expect_equal(const char* what, int got, int expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %d, expected %d\n", what, got, expected), 1;
}

// Adds the second device's array to the first one's: once by a copy, once by peer access.
static int add_peers(int* x, int* peer) {
  int can = 0, wrong = 0, results[count], *copy;
  cudaSetDevice(0);
  cudaMalloc(&copy, sizeof(results));
  wrong +=
      expect_equal("copy between devices", cudaMemcpyPeer(copy, 0, peer, 1, sizeof(results)), cudaSuccess);
  add<<<1, count>>>(x, copy);
  int factor = 2;
  cudaDeviceCanAccessPeer(&can, 0, 1);
  if (can) {
    wrong += expect_equal("peer access", cudaDeviceEnablePeerAccess(1, 0), cudaSuccess);
    wrong += expect_equal("again", cudaDeviceEnablePeerAccess(1, 0), cudaErrorPeerAccessAlreadyEnabled);
    cudaGetLastError();
    add<<<1, count>>>(x, peer);
    factor = 3;
  }
  wrong += expect_equal("synchronise", cudaDeviceSynchronize(), cudaSuccess);
  if (can) cudaDeviceDisablePeerAccess(1);
  cudaMemcpy(results, x, sizeof(results), cudaMemcpyDefault);
  for (int result : results) wrong += expect_equal("sum", result, 1 + 2 * (factor - 1));
  cudaFree(copy);
  return wrong;
}

int main() {
  int devices = 0, wrong = 0, *arrays[2];
  cudaGetDeviceCount(&devices);
  if (devices > 2) devices = 2;
  for (int device = 0; device < devices; device++) {
    cudaStream_t stream;
    int of_stream, current;
    cudaSetDevice(device);
    cudaGetDevice(&current);
    cudaStreamCreate(&stream);
    cudaMalloc(&arrays[device], count * sizeof(int));
    fill<<<1, count, 0, stream>>>(arrays[device], device + 1);
    cudaStreamSynchronize(stream);
    cudaStreamGetDevice(stream, &of_stream);
    cudaPointerAttributes attributes;
    cudaPointerGetAttributes(&attributes, arrays[device]);
    wrong += expect_equal("device of the stream", of_stream, device);
    wrong += expect_equal("device of the memory", attributes.device, device);
    wrong += expect_equal("current device", current, device);
    cudaStreamDestroy(stream);
  }
  if (devices == 2) wrong += add_peers(arrays[0], arrays[1]);
  for (int device = 0; device < devices; device++) {  // each device has its own variables
    int value;
    cudaSetDevice(device);
    cudaMemcpyFromSymbol(&value, launches, sizeof(value));
    wrong += expect_equal("launches of a device", value, 1);
    cudaFree(arrays[device]);
  }
  wrong += expect_equal("a device that does not exist", cudaSetDevice(1000), cudaErrorInvalidDevice);
  return wrong != 0;
}
