// Language: cudaFree, cudaEventDestroy and similar functions as deleters of C++ smart pointers
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>
#include <functional>
#include <memory>
#include <type_traits>

template <class T>
using DeviceArray = std::unique_ptr<T[], decltype(&cudaFree)>;
using Event = std::unique_ptr<std::remove_pointer_t<cudaEvent_t>, decltype(cudaEventDestroy)*>;

template <class T>
DeviceArray<T> device_array(std::size_t length) {
  T* memory;
  cudaMalloc(&memory, length * sizeof(T));
  return {memory, cudaFree};
}

__global__ void fill(int* x, int value) { x[threadIdx.x] = value; }

int main() {
  std::size_t before, after, total;
  cudaMemGetInfo(&before, &total);
  {
    const DeviceArray<int> x = device_array<int>(32);
    cudaEvent_t event;
    cudaEventCreate(&event);
    const Event done(event, &cudaEventDestroy);

    int* host;
    cudaMallocHost(&host, 32 * sizeof(int));
    const std::shared_ptr<int> owner(host, cudaFreeHost);

    fill<<<1, 32>>>(x.get(), 7);
    cudaEventRecord(done.get());
    cudaEventSynchronize(done.get());
    cudaMemcpy(host, x.get(), 32 * sizeof(int), cudaMemcpyDeviceToHost);
    if (host[31] != 7) return std::fprintf(stderr, "got %d, expected 7\n", host[31]), 1;
  }
  const std::function<cudaError_t(void*)> free = cudaFree;
  if (free(nullptr) != cudaSuccess) return std::fprintf(stderr, "cudaFree of a null pointer failed\n"), 1;
  cudaMemGetInfo(&after, &total);
  if (before != after) return std::fprintf(stderr, "%zu bytes are still allocated\n", before - after), 1;
  return 0;
}
