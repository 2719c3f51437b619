// Streams, events and host functions: which work waits for which. It is correct, so there are no findings.
#include <cstdio>
#include <cstdlib>

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

constexpr int N = 1 << 12, CHUNKS = 4;

__global__ void scale(int* x, int n, int factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) x[i] *= factor;
}

void count(void* counter) { ++*static_cast<int*>(counter); }

int main() {
  int *h_x, *d_x, calls = 0;
  CHECK(cudaMallocHost(&h_x, N * sizeof(int)));
  CHECK(cudaMalloc(&d_x, N * sizeof(int)));
  for (int i = 0; i < N; i++) h_x[i] = i;

  // A pipeline of chunks: the host reads a chunk as soon as its stream has finished.
  cudaStream_t streams[CHUNKS];
  const int chunk = N / CHUNKS;
  for (int k = 0; k < CHUNKS; k++) {
    CHECK(cudaStreamCreate(&streams[k]));
    const size_t bytes = chunk * sizeof(int);
    CHECK(cudaMemcpyAsync(d_x + k * chunk, h_x + k * chunk, bytes, cudaMemcpyHostToDevice, streams[k]));
    scale<<<chunk / 256, 256, 0, streams[k]>>>(d_x + k * chunk, chunk, 2);
    CHECK(cudaMemcpyAsync(h_x + k * chunk, d_x + k * chunk, bytes, cudaMemcpyDeviceToHost, streams[k]));
    CHECK(cudaLaunchHostFunc(streams[k], count, &calls));
  }
  for (int k = 0; k < CHUNKS; k++) {
    CHECK(cudaStreamSynchronize(streams[k]));
    EXPECT(h_x[k * chunk + 5] == 2 * (k * chunk + 5));
    EXPECT(calls == k + 1);
  }

  // An event orders two streams that do not synchronise with the default stream.
  cudaStream_t first, second;
  cudaEvent_t begin, scaled;
  CHECK(cudaStreamCreateWithFlags(&first, cudaStreamNonBlocking));
  CHECK(cudaStreamCreateWithPriority(&second, cudaStreamNonBlocking, -1));
  CHECK(cudaEventCreate(&begin));
  CHECK(cudaEventCreateWithFlags(&scaled, cudaEventDefault));
  CHECK(cudaEventRecord(begin, first));
  scale<<<N / 256, 256, 0, first>>>(d_x, N, 3);
  CHECK(cudaEventRecord(scaled, first));
  CHECK(cudaStreamWaitEvent(second, scaled, 0));
  CHECK(cudaMemcpyAsync(h_x, d_x, N * sizeof(int), cudaMemcpyDeviceToHost, second));
  EXPECT(cudaStreamQuery(second) == cudaErrorNotReady);
  EXPECT(cudaGetLastError() == cudaErrorNotReady);
  while (cudaStreamQuery(second) != cudaSuccess) {
  }
  cudaGetLastError();
  EXPECT(h_x[7] == 42);
  float milliseconds = -1;
  CHECK(cudaEventSynchronize(scaled));
  CHECK(cudaEventQuery(scaled));
  CHECK(cudaEventElapsedTime(&milliseconds, begin, scaled));
  EXPECT(milliseconds >= 0);

  // The default stream waits for the others, and they wait for it.
  scale<<<N / 256, 256, 0, streams[0]>>>(d_x, N, 2);
  scale<<<N / 256, 256>>>(d_x, N, 5);
  scale<<<N / 256, 256, 0, streams[1]>>>(d_x, N, 7);
  CHECK(cudaMemcpy(h_x, d_x, N * sizeof(int), cudaMemcpyDeviceToHost));
  EXPECT(h_x[1] == 2 * 3 * 2 * 5 * 7);

  // Ordinary host memory is read at the call. A stream allocates and frees its own memory in its order.
  int plain[4] = {1, 2, 3, 4}, *d_plain;
  CHECK(cudaMallocAsync(&d_plain, sizeof(plain), first));
  CHECK(cudaMemcpyAsync(d_plain, plain, sizeof(plain), cudaMemcpyHostToDevice, first));
  plain[0] = 100;
  scale<<<1, 4, 0, first>>>(d_plain, 4, 10);
  CHECK(cudaMemcpyAsync(plain, d_plain, sizeof(plain), cudaMemcpyDeviceToHost, first));
  EXPECT(plain[0] == 10 && plain[3] == 40);
  CHECK(cudaFreeAsync(d_plain, first));

  for (int k = 0; k < CHUNKS; k++) CHECK(cudaStreamDestroy(streams[k]));
  CHECK(cudaStreamDestroy(first));
  CHECK(cudaStreamDestroy(second));
  CHECK(cudaEventDestroy(begin));
  CHECK(cudaEventDestroy(scaled));
  CHECK(cudaFree(d_x));
  CHECK(cudaFreeHost(h_x));
  printf("as it should be\n");
}
