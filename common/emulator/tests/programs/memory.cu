// Every kind of memory, and every way to copy. The program is correct, so there are no findings.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CHECK(call)                                                              \
  do {                                                                           \
    const cudaError_t error = call;                                              \
    if (error != cudaSuccess) {                                                  \
      printf("%s in line %d: %s\n", #call, __LINE__, cudaGetErrorString(error)); \
      exit(1);                                                                   \
    }                                                                            \
  } while (0)
#define EXPECT(condition)                                    \
  do {                                                       \
    if (!(condition)) {                                      \
      printf("line %d: not so: %s\n", __LINE__, #condition); \
      exit(1);                                               \
    }                                                        \
  } while (0)

__constant__ float factors[4];
__device__ int counter;
__device__ float table[8];

__global__ void use_variables(float* x) {
  x[threadIdx.x] *= factors[threadIdx.x % 4];
  table[threadIdx.x % 8] = 7;
  atomicAdd(&counter, 1);
}
__global__ void increment(int* x, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i]++;
}
__global__ void fill_rows(char* rows, size_t pitch, int width) {
  if (threadIdx.x < width) rows[blockIdx.x * pitch + threadIdx.x] = char('a' + blockIdx.x);
}

int main() {
  // Host and device can both access managed memory.
  int* m;
  CHECK(cudaMallocManaged(&m, 100 * sizeof(int)));
  for (int i = 0; i < 100; i++) m[i] = i;
  increment<<<1, 128>>>(m, 100);
  CHECK(cudaDeviceSynchronize());
  EXPECT(m[99] == 100);

  // Pinned memory can be read by kernels, too.
  int *pinned, *mapped;
  CHECK(cudaHostAlloc(&pinned, 32 * sizeof(int), cudaHostAllocMapped));
  memset(pinned, 0, 32 * sizeof(int));
  CHECK(cudaHostGetDevicePointer(&mapped, pinned, 0));
  increment<<<1, 32>>>(mapped, 32);
  CHECK(cudaDeviceSynchronize());
  EXPECT(pinned[31] == 1);

  // Variables at file scope.
  const float host_factors[4] = {1, 2, 3, 4};
  float h_x[8] = {1, 1, 1, 1, 1, 1, 1, 1}, *d_x;
  CHECK(cudaMemcpyToSymbol(factors, host_factors, sizeof(host_factors)));
  CHECK(cudaMalloc(&d_x, sizeof(h_x)));
  CHECK(cudaMemcpy(d_x, h_x, sizeof(h_x), cudaMemcpyHostToDevice));
  use_variables<<<1, 8>>>(d_x);
  CHECK(cudaMemcpy(h_x, d_x, sizeof(h_x), cudaMemcpyDeviceToHost));
  EXPECT(h_x[6] == 3);
  int calls = 0;
  CHECK(cudaMemcpyFromSymbol(&calls, counter, sizeof(int)));
  EXPECT(calls == 8);
  float* d_table;
  size_t size;
  CHECK(cudaGetSymbolAddress((void**)&d_table, table));
  CHECK(cudaGetSymbolSize(&size, table));
  EXPECT(size == sizeof(h_x));
  CHECK(cudaMemcpy(h_x, d_table + 4, 4 * sizeof(float), cudaMemcpyDeviceToHost));
  EXPECT(h_x[3] == 7);

  // Rows with a pitch.
  char *d_rows, h_rows[3][5];
  size_t pitch;
  CHECK(cudaMallocPitch(&d_rows, &pitch, 5, 3));
  CHECK(cudaMemset2D(d_rows, pitch, 'x', 5, 3));
  fill_rows<<<3, 32>>>(d_rows, pitch, 4);
  CHECK(cudaMemcpy2D(h_rows, 5, d_rows, pitch, 5, 3, cudaMemcpyDeviceToHost));
  EXPECT(h_rows[2][3] == 'c' && h_rows[2][4] == 'x');

  // On the device, with queries about it.
  int *d_a, *d_b, h_b[16];
  CHECK(cudaMalloc(&d_a, sizeof(h_b)));
  CHECK(cudaMalloc(&d_b, sizeof(h_b)));
  CHECK(cudaMemset(d_a, 1, sizeof(h_b)));
  CHECK(cudaMemcpy(d_b, d_a, sizeof(h_b), cudaMemcpyDeviceToDevice));
  CHECK(cudaMemcpy(h_b, d_b, sizeof(h_b), cudaMemcpyDefault));
  EXPECT(h_b[15] == 0x01010101);
  cudaPointerAttributes attributes;
  CHECK(cudaPointerGetAttributes(&attributes, d_a + 3));
  EXPECT(attributes.type == cudaMemoryTypeDevice);
  CHECK(cudaPointerGetAttributes(&attributes, pinned));
  EXPECT(attributes.type == cudaMemoryTypeHost);
  CHECK(cudaPointerGetAttributes(&attributes, m));
  EXPECT(attributes.type == cudaMemoryTypeManaged);
  CHECK(cudaPointerGetAttributes(&attributes, h_b));
  EXPECT(attributes.type == cudaMemoryTypeUnregistered);
  size_t free_bytes, total;
  CHECK(cudaMemGetInfo(&free_bytes, &total));
  EXPECT(free_bytes < total);

  // Zero bytes, and ordinary host memory.
  int* nothing;
  CHECK(cudaMalloc(&nothing, 0));
  CHECK(cudaFree(nothing));
  CHECK(cudaMemcpy(h_b, h_x, 0, cudaMemcpyHostToHost));
  int* own = static_cast<int*>(malloc(64 * sizeof(int)));
  CHECK(cudaHostRegister(own, 64 * sizeof(int), cudaHostRegisterDefault));
  for (int i = 0; i < 64; i++) own[i] = i;
  CHECK(cudaMemcpyAsync(d_a, own, sizeof(h_b), cudaMemcpyHostToDevice));
  CHECK(cudaDeviceSynchronize());
  CHECK(cudaHostUnregister(own));
  free(own);

  CHECK(cudaFree(m));
  CHECK(cudaFree(d_x));
  CHECK(cudaFree(d_rows));
  CHECK(cudaFree(d_a));
  CHECK(cudaFree(d_b));
  CHECK(cudaFreeHost(pinned));
  printf("as it should be\n");
}
