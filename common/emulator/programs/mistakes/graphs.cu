// Graphs: nodes without dependencies, and captures that other calls disturb.
#include "case.h"

__global__ void produce(int* out) { out[threadIdx.x] = 2 * threadIdx.x; }

__global__ void consume(int* out, const int* in) { out[threadIdx.x] = in[threadIdx.x] + 1; }

static cudaGraphNode_t add_node(cudaGraph_t graph, void* kernel, void** arguments,
                                cudaGraphNode_t after = nullptr) {
  cudaKernelNodeParams parameters = {};
  parameters.func = kernel;
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(64);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node;
  check(cudaGraphAddKernelNode(&node, graph, &after, after ? 1 : 0, &parameters));
  return node;
}

struct Stream {
  Stream() { check(cudaStreamCreateWithFlags(&stream, cudaStreamDefault)); }
  ~Stream() { cudaStreamDestroy(stream); }
  operator cudaStream_t() const { return stream; }
  cudaStream_t stream;
};

// Launches the graph, waits for it, and destroys it.
static void run(cudaGraph_t graph) {
  const Stream stream;
  cudaGraphExec_t executable;
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphLaunch(executable, stream));
  check(cudaStreamSynchronize(stream));
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
}

// ---- a node does not depend on the node whose result it uses

CASE(wrong_copy_without_dependency) {
  int *x = zeros<int>(64), host[64];
  void* arguments[] = {&x};
  cudaGraph_t graph;
  cudaGraphNode_t copy;
  check(cudaGraphCreate(&graph, 0));
  add_node(graph, (void*)produce, arguments);
  cudaGraphAddMemcpyNode1D(&copy, graph, 0, 0, host, x, 256, cudaMemcpyDefault);  // BUG streams: produce
  run(graph);
}

CASE(wrong_memset_without_dependency) {
  int *x = zeros<int>(64), *y = zeros<int>(64);
  void* arguments[] = {&y, &x};
  cudaGraph_t graph;
  cudaGraphNode_t set;
  check(cudaGraphCreate(&graph, 0));
  const cudaMemsetParams parameters = {x, 0, 7, sizeof(int), 64, 1};
  check(cudaGraphAddMemsetNode(&set, graph, nullptr, 0, &parameters));
  cudaKernelNodeParams launch = {};
  launch.func = (void*)consume;
  launch.gridDim = dim3(1);
  launch.blockDim = dim3(64);
  launch.kernelParams = arguments;
  cudaGraphNode_t node;
  check(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &launch));  // BUG streams: consume
  run(graph);
}

CASE(right_dependencies) {
  int *x = unwritten<int>(64), *y = unwritten<int>(64), host[64];
  void *of_produce[] = {&x}, *of_consume[] = {&y, &x};
  cudaGraph_t graph;
  check(cudaGraphCreate(&graph, 0));
  cudaGraphNode_t produced = add_node(graph, (void*)produce, of_produce);
  cudaGraphNode_t consumed = add_node(graph, (void*)consume, of_consume, produced), copy;
  check(cudaGraphAddMemcpyNode1D(&copy, graph, &consumed, 1, host, y, sizeof(host), cudaMemcpyDeviceToHost));
  run(graph);
  for (int i = 0; i < 64; i++) expect(host[i] == 2 * i + 1);
}

CASE(right_independent_nodes) {
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  void *of_x[] = {&x}, *of_y[] = {&y};
  cudaGraph_t graph;
  check(cudaGraphCreate(&graph, 0));
  add_node(graph, (void*)produce, of_x);
  add_node(graph, (void*)produce, of_y);
  run(graph);
  expect_each(x, 64, [](int i) { return 2 * i; });
  expect_each(y, 64, [](int i) { return 2 * i; });
}

// ---- the host does not wait for the graph

CASE(wrong_host_reads_before_the_graph_ends) {
  const Stream stream;
  int* x;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaMallocManaged(&x, 64 * sizeof(int)));
  void* arguments[] = {&x};
  check(cudaGraphCreate(&graph, 0));
  add_node(graph, (void*)produce, arguments);
  check(cudaGraphInstantiate(&executable, graph, 0));
  check(cudaGraphLaunch(executable, stream));
  const int last = x[63];  // BUG streams: x
  check(cudaStreamSynchronize(stream));
  std::printf("%d\n", last);
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaFree(x));
}

CASE(right_host_waits_for_the_graph) {
  const Stream stream;
  int* x;
  cudaGraph_t graph;
  cudaGraphExec_t executable;
  check(cudaMallocManaged(&x, 64 * sizeof(int)));
  void* arguments[] = {&x};
  check(cudaGraphCreate(&graph, 0));
  add_node(graph, (void*)produce, arguments);
  check(cudaGraphInstantiate(&executable, graph, 0));
  for (int launch = 0; launch < 2; launch++) {
    check(cudaGraphLaunch(executable, stream));
    check(cudaStreamSynchronize(stream));
    expect(x[63] == 126);
    x[63] = 0;
  }
  check(cudaGraphExecDestroy(executable));
  check(cudaGraphDestroy(graph));
  check(cudaFree(x));
}

// ---- calls that a capture does not allow

CASE(wrong_synchronisation_in_a_capture) {
  const Stream stream;
  int* x = unwritten<int>(64);
  cudaGraph_t graph;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  produce<<<1, 64, 0, stream>>>(x);
  cudaStreamSynchronize(stream);  // BUG streams: cudaStreamSynchronize
  check(cudaStreamEndCapture(stream, &graph));
}

CASE(wrong_default_stream_in_a_capture) {
  const Stream stream;
  int* x = zeros<int>(64);
  cudaGraph_t graph;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  produce<<<1, 64, 0, stream>>>(x);
  produce<<<1, 64>>>(x);  // BUG streams: default
  check(cudaStreamEndCapture(stream, &graph));
}

CASE(wrong_stream_that_does_not_join) {
  const Stream first, second;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  cudaEvent_t fork;
  cudaGraph_t graph;
  check(cudaEventCreate(&fork));
  check(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  check(cudaEventRecord(fork, first));
  check(cudaStreamWaitEvent(second, fork, 0));
  produce<<<1, 64, 0, first>>>(x);
  produce<<<1, 64, 0, second>>>(y);
  check(cudaStreamEndCapture(first, &graph));  // BUG streams: cudaStreamEndCapture
}

CASE(right_synchronisation_after_a_capture) {
  const Stream stream;
  int* x = unwritten<int>(64);
  cudaGraph_t graph;
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal));
  produce<<<1, 64, 0, stream>>>(x);
  check(cudaStreamEndCapture(stream, &graph));
  check(cudaStreamSynchronize(stream));
  run(graph);
  expect_each(x, 64, [](int i) { return 2 * i; });
}

CASE(right_default_stream_beside_a_capture) {  // a non-blocking stream does not wait for the default stream
  cudaStream_t stream;
  int *x = unwritten<int>(64), *y = unwritten<int>(64);
  cudaGraph_t graph;
  check(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking));
  check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeRelaxed));
  produce<<<1, 64, 0, stream>>>(x);
  produce<<<1, 64>>>(y);
  check(cudaStreamEndCapture(stream, &graph));
  run(graph);
  expect_each(x, 64, [](int i) { return 2 * i; });
  expect_each(y, 64, [](int i) { return 2 * i; });
  check(cudaStreamDestroy(stream));
}

CASE(right_streams_that_fork_and_join) {
  const Stream first, second;
  int *x = unwritten<int>(64), *y = unwritten<int>(64), *z = unwritten<int>(64);
  cudaEvent_t fork, join;
  cudaGraph_t graph;
  check(cudaEventCreate(&fork));
  check(cudaEventCreate(&join));
  check(cudaStreamBeginCapture(first, cudaStreamCaptureModeGlobal));
  produce<<<1, 64, 0, first>>>(x);
  check(cudaEventRecord(fork, first));
  check(cudaStreamWaitEvent(second, fork, 0));
  consume<<<1, 64, 0, second>>>(y, x);
  consume<<<1, 64, 0, first>>>(z, x);
  check(cudaEventRecord(join, second));
  check(cudaStreamWaitEvent(first, join, 0));
  consume<<<1, 64, 0, first>>>(x, y);
  check(cudaStreamEndCapture(first, &graph));
  run(graph);
  expect_each(x, 64, [](int i) { return 2 * i + 2; });
  expect_each(z, 64, [](int i) { return 2 * i + 1; });
  check(cudaEventDestroy(fork));
  check(cudaEventDestroy(join));
}

int main(int words, char** word) { return run_cases(words, word); }
