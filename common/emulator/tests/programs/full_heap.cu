// Kernels take memory from their heap until it is full, and give it back.
#include <cstdio>

constexpr int most = 64;
constexpr size_t piece = 1 << 20;
__device__ char* pieces[most];

__global__ void take(int* count) {
  while (*count < most && (pieces[*count] = static_cast<char*>(malloc(piece)))) ++*count;
}
__global__ void give_back(int* count) {
  while (*count > 0) free(pieces[--*count]);
}

int pieces_taken(int* count) {
  take<<<1, 1>>>(count);
  cudaDeviceSynchronize();
  const int taken = *count;
  give_back<<<1, 1>>>(count);
  cudaDeviceSynchronize();
  return taken;
}

int main() {
  int* count;
  cudaMallocManaged(&count, sizeof(int));
  *count = 0;
  const int first = pieces_taken(count), again = pieces_taken(count);
  cudaDeviceSetLimit(cudaLimitMallocHeapSize, 20 * piece);
  std::printf("%d %d %d\n", first, again, pieces_taken(count));
  cudaFree(count);
}
