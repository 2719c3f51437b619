// Graphs: nodes that record events and wait for them, and nodes that allocate and free memory
// Support: approximate: each launch gets its memory at the same address, even if it was not freed
#include <cuda_runtime.h>

#include <cstdio>

constexpr int count = 64;

__global__ void fill(int* x, int value) { x[threadIdx.x] = value; }
__global__ void add(const int* x, int* y) { y[threadIdx.x] += x[threadIdx.x]; }

static int wrong = 0;

static void check(cudaError_t error) {
  if (error == cudaSuccess) return;
  fprintf(stderr, "%s\n", cudaGetErrorString(error));
  wrong++;
}

static void expect_each(const char* what, const int* memory, int expected) {
  int values[count];
  check(cudaMemcpy(values, memory, sizeof(values), cudaMemcpyDeviceToHost));
  for (int value : values)
    if (value != expected) {
      fprintf(stderr, "%s: got %d, expected %d\n", what, value, expected);
      wrong++;
      return;
    }
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t after, void* kernel, void** arguments) {
  cudaKernelNodeParams parameters = {};
  parameters.func = kernel;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(count);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node;
  check(cudaGraphAddKernelNode(&node, graph, &after, 1, &parameters));
  return node;
}

static void launch_twice(cudaGraph_t graph, cudaStream_t stream) {
  cudaGraphExec_t executable;
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphLaunch(executable, stream));
  check(cudaGraphLaunch(executable, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
}

// Nodes that allocate, fill, add to the result, and free.
static void memory_of_nodes(int* result, cudaStream_t stream) {
  cudaGraph_t graph;
  cudaGraphNode_t allocation, release;
  cudaMemAllocNodeParams memory = {};
  memory.poolProps.allocType = cudaMemAllocationTypePinned;
  memory.poolProps.location.type = cudaMemLocationTypeDevice;
  memory.poolProps.location.id = 0;
  memory.bytesize = count * sizeof(int);
  check(cudaGraphCreate(&graph, 0));
  check(cudaGraphAddMemAllocNode(&allocation, graph, nullptr, 0, &memory));
  int value = 3;
  void *fills[] = {&memory.dptr, &value}, *adds[] = {&memory.dptr, &result};
  const cudaGraphNode_t filled = add_kernel(graph, allocation, (void*)fill, fills);
  const cudaGraphNode_t added = add_kernel(graph, filled, (void*)add, adds);
  check(cudaGraphAddMemFreeNode(&release, graph, &added, 1, memory.dptr));
  cudaGraphNodeType type;
  check(cudaGraphNodeGetType(release, &type));
  if (type != cudaGraphNodeTypeMemFree) wrong++;
  launch_twice(graph, stream);
  expect_each("nodes", result, 2 * 3);
}

// The same from a capture.
static void memory_of_capture(int* result, cudaStream_t stream) {
  cudaGraph_t graph;
  int* memory;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  check(cudaMallocAsync(&memory, count * sizeof(int), stream));
  fill<<<1, count, 0, stream>>>(memory, 5);
  add<<<1, count, 0, stream>>>(memory, result);
  check(cudaFreeAsync(memory, stream));
  check(cudaStreamEndCapture(stream, &graph));
  launch_twice(graph, stream);
  expect_each("capture", result, 2 * 3 + 2 * 5);
}

// A graph waits for another stream, which then waits for the graph.
static void events(int* result, cudaStream_t stream) {
  cudaStream_t other;
  cudaEvent_t before, after, found;
  check(cudaStreamCreate(&other));
  check(cudaEventCreate(&before));
  check(cudaEventCreate(&after));
  cudaGraph_t graph;
  cudaGraphNode_t wait, record;
  check(cudaGraphCreate(&graph, 0));
  check(cudaGraphAddEventWaitNode(&wait, graph, nullptr, 0, before));
  void* adds[] = {&result, &result};
  const cudaGraphNode_t doubled = add_kernel(graph, wait, (void*)add, adds);
  check(cudaGraphAddEventRecordNode(&record, graph, &doubled, 1, after));
  check(cudaGraphEventRecordNodeGetEvent(record, &found));
  if (found != after) wrong++;
  cudaGraphExec_t executable;
  check(cudaGraphInstantiate(&executable, graph, 0));

  fill<<<1, count, 0, other>>>(result, 4);
  check(cudaEventRecord(before, other));
  check(cudaGraphLaunch(executable, stream));
  check(cudaStreamWaitEvent(other, after));
  add<<<1, count, 0, other>>>(result, result);
  check(cudaStreamSynchronize(other));
  expect_each("events", result, 16);

  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaEventDestroy(before));
  check(cudaEventDestroy(after));
  check(cudaStreamDestroy(other));
}

int main() {
  int* result;
  cudaStream_t stream;
  check(cudaStreamCreate(&stream));
  check(cudaMalloc(&result, count * sizeof(int)));
  check(cudaMemset(result, 0, count * sizeof(int)));
  check(cudaDeviceSynchronize());
  memory_of_nodes(result, stream);
  memory_of_capture(result, stream);
  events(result, stream);
  check(cudaFree(result));
  check(cudaStreamDestroy(stream));
  return wrong != 0;
}
