// Graphs: capture of one stream or of several that events connect, updates of whole graphs
// Support: yes
#include <cuda_runtime.h>

#include <cstdio>

constexpr int count = 1000, block = 128;

__global__ void multiply(float* x, float factor) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) x[i] *= factor;
}

__global__ void add(float* sum, const float* x, const float* y) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < count) sum[i] = x[i] + y[i];
}

static int expect_equal(const char* what, double got, double expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected), 1;
}

// Scales x and y in two streams, and adds them.
static cudaGraph_t capture(cudaStream_t first, cudaStream_t second, float* x, float* y, float* sum,
                           float factor) {
  cudaEvent_t fork, join;
  cudaEventCreateWithFlags(&fork, cudaEventDisableTiming);
  cudaEventCreateWithFlags(&join, cudaEventDisableTiming);
  const int grid = (count + block - 1) / block;
  cudaGraph_t graph = nullptr;
  cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal);
  cudaEventRecord(fork, first);
  cudaStreamWaitEvent(second, fork, 0);
  multiply<<<grid, block, 0, first>>>(x, factor);
  multiply<<<grid, block, 0, second>>>(y, 2 * factor);
  cudaEventRecord(join, second);
  cudaStreamWaitEvent(first, join, 0);
  add<<<grid, block, 0, first>>>(sum, x, y);
  cudaStreamEndCapture(first, &graph);
  cudaEventDestroy(fork);
  cudaEventDestroy(join);
  return graph;
}

int main() {
  float *x, *y, *sum, values[count];
  for (int i = 0; i < count; i++) values[i] = i;
  cudaMalloc(&x, sizeof(values));
  cudaMalloc(&y, sizeof(values));
  cudaMalloc(&sum, sizeof(values));
  cudaMemcpy(x, values, sizeof(values), cudaMemcpyHostToDevice);
  cudaMemcpy(y, values, sizeof(values), cudaMemcpyHostToDevice);
  cudaStream_t first, second;
  cudaStreamCreate(&first);
  cudaStreamCreateWithFlags(&second, cudaStreamNonBlocking);

  cudaGraph_t graph = capture(first, second, x, y, sum, 2);
  size_t nodes = 0;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  int wrong = expect_equal("nodes", nodes, 3);
  cudaStreamCaptureStatus status;
  cudaStreamIsCapturing(first, &status);
  wrong += expect_equal("status after the capture", status, cudaStreamCaptureStatusNone);

  cudaGraphExec_t executable;
  wrong += expect_equal("instantiate", cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  wrong += expect_equal("launch", cudaGraphLaunch(executable, first), cudaSuccess);
  wrong += expect_equal("second launch", cudaGraphLaunch(executable, first), cudaSuccess);
  cudaMemcpyAsync(values, sum, sizeof(values), cudaMemcpyDeviceToHost, first);
  cudaStreamSynchronize(first);
  for (int i = 0; i < count; i++) wrong += expect_equal("sum", values[i], (2 * 2 + 4 * 4) * i);

  // The same work with other arguments.
  cudaGraph_t other = capture(first, second, x, y, sum, 0.5f);
  cudaGraphExecUpdateResultInfo result;
  wrong += expect_equal("update", cudaGraphExecUpdate(executable, other, &result), cudaSuccess);
  cudaGraphLaunch(executable, first);
  cudaMemcpyAsync(values, sum, sizeof(values), cudaMemcpyDeviceToHost, first);
  cudaStreamSynchronize(first);
  for (int i = 0; i < count; i++) wrong += expect_equal("sum after the update", values[i], (2 + 16) * i);

  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
  cudaGraphDestroy(other);
  cudaStreamDestroy(first);
  cudaStreamDestroy(second);
  cudaFree(x);
  cudaFree(y);
  cudaFree(sum);
  return wrong != 0;
}
