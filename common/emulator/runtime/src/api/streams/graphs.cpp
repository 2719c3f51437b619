// Graphs and their nodes: creation, dependencies, queries.
#include <algorithm>

#include "../../report/call.h"
#include "graph.h"

namespace emulator {
namespace {

std::vector<std::unique_ptr<CUgraph_st>>& graphs() {
  static auto& all = *new std::vector<std::unique_ptr<CUgraph_st>>;  // outlives every static object
  return all;
}

bool contains(const CUgraph_st& graph, cudaGraphNode_t node) {
  return std::any_of(graph.nodes.begin(), graph.nodes.end(),
                     [&](const auto& one) { return one.get() == node; });
}

using Edge = std::pair<cudaGraphNode_t, cudaGraphNode_t>;

std::vector<Edge> edges_of(const CUgraph_st& graph) {
  std::vector<Edge> edges;
  for (const auto& node : graph.nodes)
    for (const cudaGraphNode_t before : node->after) edges.emplace_back(before, node.get());
  return edges;
}

// CUDA's convention: with `to` null, `count` becomes the number of all; otherwise, of those that were
// written.
template <typename T, typename Writer>
cudaError_t give(const std::vector<T>& all, bool is_asked, std::size_t* count, Writer write) {
  if (!count) return fail(cudaErrorInvalidValue);
  if (is_asked) {
    *count = std::min(*count, all.size());
    for (std::size_t i = 0; i < *count; i++) write(i);
  } else {
    *count = all.size();
  }
  return cudaSuccess;
}

cudaError_t give_nodes(const Nodes& all, cudaGraphNode_t* nodes, std::size_t* count) {
  return give(all, nodes, count, [&](std::size_t i) { nodes[i] = all[i]; });
}

// The copy of a graph: each node remembers its original.
cudaGraph_t clone(const CUgraph_st& graph) {
  const cudaGraph_t copy = new_graph();
  for (const auto& node : graph.nodes) {
    auto made = std::make_unique<CUgraphNode_st>(*node);
    made->graph = copy;
    made->original = node.get();
    if (node->child) made->child = clone(*node->child);
    for (std::size_t i = 0; i < made->arguments.size(); i++) made->addresses[i] = made->arguments[i].data();
    if (made->kernel.func) made->kernel.kernelParams = made->addresses.data();
    copy->nodes.push_back(std::move(made));
  }
  for (const auto& node : copy->nodes)
    for (cudaGraphNode_t& before : node->after)
      before = std::find_if(copy->nodes.begin(), copy->nodes.end(), [&](const auto& one) {
                 return one->original == before;
               })->get();
  return copy;
}

cudaError_t change_edges(const cudaGraphNode_t* from, const cudaGraphNode_t* to, std::size_t count,
                         bool adds) {
  for (std::size_t i = 0; i < count; i++) {
    const cudaGraphNode_t before = find_node(from[i]), node = find_node(to[i]);
    if (!before || !node) return cudaErrorInvalidValue;
    const bool is_known = std::count(node->after.begin(), node->after.end(), before);
    if (before == node || before->graph != node->graph || is_known == adds)
      return fail(cudaErrorInvalidValue);
    if (adds)
      node->after.push_back(before);
    else
      std::erase(node->after, before);
  }
  return cudaSuccess;
}

}  // namespace

cudaGraph_t new_graph() {
  graphs().push_back(std::make_unique<CUgraph_st>());
  return graphs().back().get();
}

cudaGraphNode_t new_node(cudaGraph_t graph, Work work, Nodes after) {
  graph->nodes.push_back(
      std::make_unique<CUgraphNode_st>(CUgraphNode_st{graph, std::move(work), std::move(after)}));
  return graph->nodes.back().get();
}

cudaGraph_t find_graph(cudaGraph_t graph) {
  for (const auto& one : graphs())
    if (one.get() == graph) return graph;
  return no_such("a graph"), nullptr;
}

cudaGraphNode_t find_node(cudaGraphNode_t node) {
  for (const auto& graph : graphs())
    if (contains(*graph, node)) return node;
  return no_such("a node of a graph"), nullptr;
}

}  // namespace emulator

using namespace emulator;

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags, Position where) {
  const Call call("cudaGraphCreate", where);
  if (sticky_error()) return sticky_error();
  if (!graph || flags) return fail(cudaErrorInvalidValue);
  return *graph = new_graph(), cudaSuccess;
}
cudaError_t cudaGraphClone(cudaGraph_t* copy, cudaGraph_t graph, Position where) {
  const Call call("cudaGraphClone", where);
  if (!copy || !find_graph(graph)) return fail(cudaErrorInvalidValue);
  return *copy = clone(*graph), cudaSuccess;
}
cudaError_t cudaGraphDestroy(cudaGraph_t graph, Position where) {
  const Call call("cudaGraphDestroy", where);
  if (!find_graph(graph)) return cudaErrorInvalidValue;
  std::erase_if(graphs(), [&](const auto& one) { return one.get() == graph; });
  return cudaSuccess;
}
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node, Position where) {
  const Call call("cudaGraphDestroyNode", where);
  if (!find_node(node)) return cudaErrorInvalidValue;
  for (const auto& other : node->graph->nodes) std::erase(other->after, node);
  std::erase_if(node->graph->nodes, [&](const auto& one) { return one.get() == node; });
  return cudaSuccess;
}

cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData*, std::size_t count,
                                     Position where) {
  const Call call("cudaGraphAddDependencies", where);
  return find_graph(graph) ? change_edges(from, to, count, true) : cudaErrorInvalidValue;
}
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, std::size_t count, Position where) {
  return cudaGraphAddDependencies(graph, from, to, nullptr, count, where);
}
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData*,
                                        std::size_t count, Position where) {
  const Call call("cudaGraphRemoveDependencies", where);
  return find_graph(graph) ? change_edges(from, to, count, false) : cudaErrorInvalidValue;
}
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count, Position where) {
  const Call call("cudaGraphGetNodes", where);
  if (!find_graph(graph)) return cudaErrorInvalidValue;
  Nodes all;
  for (const auto& node : graph->nodes) all.push_back(node.get());
  return give_nodes(all, nodes, count);
}
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count,
                                  Position where) {
  const Call call("cudaGraphGetRootNodes", where);
  if (!find_graph(graph)) return cudaErrorInvalidValue;
  Nodes roots;
  for (const auto& node : graph->nodes)
    if (node->after.empty()) roots.push_back(node.get());
  return give_nodes(roots, nodes, count);
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* data, std::size_t* count, Position where) {
  const Call call("cudaGraphGetEdges", where);
  if (!find_graph(graph)) return cudaErrorInvalidValue;
  const auto edges = edges_of(*graph);
  return give(edges, from && to, count, [&](std::size_t i) {
    from[i] = edges[i].first;
    to[i] = edges[i].second;
    if (data) data[i] = {};
  });
}
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              std::size_t* count, Position where) {
  return cudaGraphGetEdges(graph, from, to, nullptr, count, where);
}
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type, Position where) {
  const Call call("cudaGraphNodeGetType", where);
  if (!find_node(node)) return cudaErrorInvalidValue;
  return *type = node->child ? cudaGraphNodeTypeGraph : node->work.type, cudaSuccess;
}
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t node, cudaGraph_t copy,
                                     Position where) {
  const Call call("cudaGraphNodeFindInClone", where);
  if (!find_graph(copy)) return cudaErrorInvalidValue;
  for (const auto& one : copy->nodes)
    if (one->original == node) return *found = one.get(), cudaSuccess;
  return fail(cudaErrorInvalidValue);
}
