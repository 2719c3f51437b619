// Graphs: nodes for kernels, copies, memsets and host functions; updates, clones, child graphs
// Support: approximate: independent nodes run one after another
#include <cuda_runtime.h>

#include <cstdio>

constexpr int count = 64;

__global__ void add(float* x, float value) { x[threadIdx.x] += value; }

static void CUDART_CB note_end(void* calls) { ++*static_cast<int*>(calls); }

static int expect_equal(const char* what, double got, double expected) {
  if (got == expected) return 0;
  return fprintf(stderr, "%s: got %g, expected %g\n", what, got, expected), 1;
}

static cudaGraphNode_t add_kernel(cudaGraph_t graph, cudaGraphNode_t after, float* x, float value) {
  void* arguments[] = {&x, &value};
  cudaKernelNodeParams parameters = {};
  parameters.func = (void*)add;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(count);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node = nullptr;
  cudaGraphAddKernelNode(&node, graph, &after, 1, &parameters);
  return node;
}

int main() {
  float *x, *y, results[count];
  int calls = 0, wrong = 0;
  cudaMalloc(&x, sizeof(results));
  cudaMalloc(&y, sizeof(results));

  // set x -> add 1 to x -> copy x to y -> copy y to the host -> host function
  cudaGraph_t graph;
  wrong += expect_equal("create", cudaGraphCreate(&graph, 0), cudaSuccess);
  cudaMemsetParams set = {};
  set.dst = x;
  set.value = 0x3f800000;  // the bits of 1.0f
  set.elementSize = sizeof(float);
  set.width = count;
  set.height = 1;
  cudaGraphNode_t start, added, copied, to_host, end;
  wrong += expect_equal("memset", cudaGraphAddMemsetNode(&start, graph, nullptr, 0, &set), cudaSuccess);
  added = add_kernel(graph, start, x, 1);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(x, sizeof(results), count, 1);
  copy.dstPtr = make_cudaPitchedPtr(y, sizeof(results), count, 1);
  copy.extent = make_cudaExtent(sizeof(results), 1, 1);
  copy.kind = cudaMemcpyDeviceToDevice;
  wrong += expect_equal("copy", cudaGraphAddMemcpyNode(&copied, graph, &added, 1, &copy), cudaSuccess);
  wrong += expect_equal("copy to the host",
                        cudaGraphAddMemcpyNode1D(&to_host, graph, nullptr, 0, results, y, sizeof(results),
                                                 cudaMemcpyDeviceToHost),
                        cudaSuccess);
  cudaGraphAddDependencies(graph, &copied, &to_host, nullptr, 1);
  cudaHostNodeParams host = {note_end, &calls};
  wrong += expect_equal("host", cudaGraphAddHostNode(&end, graph, &to_host, 1, &host), cudaSuccess);

  size_t nodes = 0, edges = 0;
  cudaGraphNodeType type;
  cudaGraphGetNodes(graph, nullptr, &nodes);
  cudaGraphGetEdges(graph, nullptr, nullptr, nullptr, &edges);
  cudaGraphNodeGetType(added, &type);
  wrong += expect_equal("nodes", nodes, 5) + expect_equal("edges", edges, 4);
  wrong += expect_equal("type", type, cudaGraphNodeTypeKernel);

  cudaGraphExec_t executable;
  cudaStream_t stream;
  cudaStreamCreate(&stream);
  wrong += expect_equal("instantiate", cudaGraphInstantiate(&executable, graph, 0), cudaSuccess);
  for (int launch = 0; launch < 3; launch++) cudaGraphLaunch(executable, stream);
  wrong += expect_equal("launches", cudaStreamSynchronize(stream), cudaSuccess);
  for (float result : results) wrong += expect_equal("result", result, 2);
  wrong += expect_equal("calls", calls, 3);

  // Other arguments for the kernel, in the executable graph only.
  float more = 10;
  void* arguments[] = {&x, &more};
  cudaKernelNodeParams parameters;
  cudaGraphKernelNodeGetParams(added, &parameters);
  parameters.kernelParams = arguments;
  wrong += expect_equal("new parameters", cudaGraphExecKernelNodeSetParams(executable, added, &parameters),
                        cudaSuccess);
  cudaGraphLaunch(executable, stream);
  cudaStreamSynchronize(stream);
  wrong += expect_equal("updated result", results[5], 11);

  // A graph that contains the first one.
  cudaGraph_t outer, clone;
  cudaGraphExec_t outer_executable;
  cudaGraphNode_t child;
  cudaGraphCreate(&outer, 0);
  cudaGraphClone(&clone, graph);
  cudaGraphAddChildGraphNode(&child, outer, nullptr, 0, clone);
  add_kernel(outer, child, y, 100);
  cudaGraphInstantiate(&outer_executable, outer, 0);
  cudaGraphLaunch(outer_executable, stream);
  cudaMemcpyAsync(results, y, sizeof(results), cudaMemcpyDeviceToHost, stream);
  cudaStreamSynchronize(stream);
  wrong += expect_equal("result of the outer graph", results[5], 102);
  wrong += expect_equal("all calls", calls, 5);

  for (cudaGraphExec_t each : {executable, outer_executable}) cudaGraphExecDestroy(each);
  for (cudaGraph_t each : {graph, outer, clone}) cudaGraphDestroy(each);
  cudaStreamDestroy(stream);
  cudaFree(x);
  cudaFree(y);
  return wrong != 0;
}
