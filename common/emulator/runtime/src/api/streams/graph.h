// Graphs: nodes of work with dependencies, captures of streams, and the nodes of executable graphs.
#pragma once

#include <memory>
#include <vector>

#include "emulator/graph_api.h"
#include "stream_queue.h"

EMULATOR_BEGIN
namespace emulator {

using Nodes = std::vector<cudaGraphNode_t>;

// A capture under way. All streams and events that belong to it share one object.
struct Capture {
  cudaGraph_t graph;
  CUstream_st* origin;
  cudaStreamCaptureMode mode;
  unsigned long long id;
  bool is_valid = true;
  bool is_over = false;
};

}  // namespace emulator

struct CUgraphNode_st {
  cudaGraph_t graph;
  emulator::Work work;
  emulator::Nodes after;
  cudaGraph_t child = nullptr;                    // of a child graph node
  cudaGraphNode_t original = nullptr;             // of a node of a clone
  cudaKernelNodeParams kernel = {};               // of a kernel node that was not captured
  std::vector<std::vector<char>> arguments = {};  // their values
  std::vector<void*> addresses = {};              // of these values
};

struct CUgraph_st {
  std::vector<std::unique_ptr<CUgraphNode_st>> nodes;
};

namespace emulator {

// A node of an executable graph. Nodes of child graphs are among them.
struct ExecutableNode {
  cudaGraphNode_t node;  // of the graph that was instantiated
  Work work;
  std::vector<std::size_t> after;  // numbers of nodes
  bool is_enabled = true;
};

cudaGraph_t find_graph(cudaGraph_t graph);        // null, and a report, if there is no such graph
cudaGraphNode_t find_node(cudaGraphNode_t node);  // the same
cudaGraph_t new_graph();
cudaGraphNode_t new_node(cudaGraph_t graph, Work work, Nodes after);

// The work of nodes with these parameters. Each reports what is wrong with them.
cudaError_t prepare_node_work(const cudaKernelNodeParams* parameters, Work& work);
cudaError_t prepare_node_work(const cudaMemcpy3DParms* parameters, Work& work);
cudaError_t prepare_node_work(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                              int to_argument, Work& work);
cudaError_t prepare_node_work(const cudaMemsetParams* parameters, Work& work);
cudaError_t prepare_node_work(const cudaHostNodeParams* parameters, Work& work);
cudaError_t prepare_node_work(cudaEvent_t event, cudaGraphNodeType type, Work& work);

// Capture: what a captured stream does with work and events.
cudaError_t capture_work(CUstream_st& stream, Work work);
cudaError_t join_capture(CUstream_st& stream, const CUevent_st& event);
cudaError_t check_no_implicit_capture();  // before work in the default stream

}  // namespace emulator
EMULATOR_END
