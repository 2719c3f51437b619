// Memory: pitched and three-dimensional allocations, copies and memsets
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>
#include <vector>

constexpr size_t width = 5, height = 4, depth = 3;  // elements

__global__ void add_index(cudaPitchedPtr volume) {
  char* slice = static_cast<char*>(volume.ptr) + threadIdx.z * volume.pitch * volume.ysize;
  int* row = reinterpret_cast<int*>(slice + threadIdx.y * volume.pitch);
  row[threadIdx.x] += (threadIdx.z * height + threadIdx.y) * width + threadIdx.x;
}

static int expect_equal(const char* what, long long got, long long expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %lld, expected %lld\n", what, got, expected), 1;
}

int main() {
  const cudaExtent extent = make_cudaExtent(width * sizeof(int), height, depth);
  cudaPitchedPtr volume;
  int wrong = expect_equal("cudaMalloc3D", cudaMalloc3D(&volume, extent), cudaSuccess);
  wrong += expect_equal("cudaMemset3D", cudaMemset3D(volume, 0, extent), cudaSuccess);
  add_index<<<1, dim3(width, height, depth)>>>(volume);

  // All of it to the host.
  std::vector<int> all(width * height * depth);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = volume;
  copy.dstPtr = make_cudaPitchedPtr(all.data(), width * sizeof(int), width, height);
  copy.extent = extent;
  copy.kind = cudaMemcpyDeviceToHost;
  wrong += expect_equal("cudaMemcpy3D", cudaMemcpy3D(&copy), cudaSuccess);
  for (size_t i = 0; i < all.size(); i++) wrong += expect_equal("element", all[i], i);

  // A box of 2 x 2 x 2 elements from the middle, into a smaller volume.
  int box[8];
  copy.srcPos = make_cudaPos(3 * sizeof(int), 1, 1);
  copy.dstPtr = make_cudaPitchedPtr(box, 2 * sizeof(int), 2, 2);
  copy.extent = make_cudaExtent(2 * sizeof(int), 2, 2);
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  wrong += expect_equal("cudaMemcpy3DAsync", cudaMemcpy3DAsync(&copy, stream), cudaSuccess);
  cudaStreamSynchronize(stream);
  for (size_t i = 0; i < 8; i++)
    wrong += expect_equal("box", box[i], ((1 + i / 4) * height + 1 + i / 2 % 2) * width + 3 + i % 2);

  // Columns of a matrix.
  int *matrix, column[height];
  size_t pitch;
  cudaMallocPitch(&matrix, &pitch, width * sizeof(int), height);
  cudaMemcpy2D(matrix, pitch, all.data(), width * sizeof(int), width * sizeof(int), height,
               cudaMemcpyHostToDevice);
  cudaMemcpy2D(column, sizeof(int), matrix + 2, pitch, sizeof(int), height, cudaMemcpyDeviceToHost);
  for (size_t y = 0; y < height; y++) wrong += expect_equal("column", column[y], y * width + 2);

  cudaStreamDestroy(stream);
  cudaFree(matrix);
  cudaFree(volume.ptr);
  return wrong != 0;
}
