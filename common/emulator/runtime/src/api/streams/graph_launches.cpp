// Executable graphs: instantiation, launches and updates.
#include <algorithm>
#include <map>

#include "../../report/call.h"
#include "graph.h"

struct CUgraphExec_st {
  unsigned long long flags;
  std::vector<emulator::ExecutableNode> nodes;  // a node is behind the nodes that it depends on
};

namespace emulator {
namespace {

std::vector<std::unique_ptr<CUgraphExec_st>>& executables() {
  static auto& all = *new std::vector<std::unique_ptr<CUgraphExec_st>>;  // outlives every static object
  return all;
}

CUgraphExec_st* find_executable(cudaGraphExec_t executable) {
  for (const auto& one : executables())
    if (one.get() == executable) return executable;
  return no_such("an executable graph"), nullptr;
}

// The nodes in an order in which dependencies come first, otherwise as they were added; fewer if there is a
// cycle.
Nodes in_order(const CUgraph_st& graph) {
  Nodes order;
  const auto is_in = [&](cudaGraphNode_t node) { return std::count(order.begin(), order.end(), node) > 0; };
  for (bool has_grown = true; has_grown;) {
    has_grown = false;
    for (const auto& node : graph.nodes)
      if (!is_in(node.get()) && std::all_of(node->after.begin(), node->after.end(), is_in)) {
        order.push_back(node.get());
        has_grown = true;
      }
  }
  return order;
}

// Adds the nodes of a graph and of its child graphs, all of them behind `before`. False if there is a cycle.
bool add_nodes(const CUgraph_st& graph, const std::vector<std::size_t>& before,
               std::vector<ExecutableNode>& nodes) {
  const Nodes order = in_order(graph);
  std::map<cudaGraphNode_t, std::size_t> numbers;
  for (const cudaGraphNode_t node : order) {
    std::vector<std::size_t> after;
    for (const cudaGraphNode_t other : node->after) after.push_back(numbers[other]);
    if (after.empty()) after = before;
    if (node->child) {
      const std::size_t first = nodes.size();
      if (!add_nodes(*node->child, after, nodes)) return false;
      for (std::size_t i = first; i < nodes.size(); i++) after.push_back(i);
    }
    numbers[node] = nodes.size();
    nodes.push_back({node, node->work, std::move(after)});
  }
  return order.size() == graph.nodes.size();
}

// Of the nodes that could run next, each time the one that was added last: what lacks a dependency runs too
// early.
std::vector<std::size_t> latest_first(const std::vector<ExecutableNode>& nodes) {
  std::vector<std::size_t> order;
  std::vector<bool> is_done(nodes.size());
  while (order.size() < nodes.size())
    for (std::size_t i = nodes.size(); i-- > 0;) {
      const auto& after = nodes[i].after;
      if (is_done[i] ||
          !std::all_of(after.begin(), after.end(), [&](std::size_t other) { return is_done[other]; }))
        continue;
      is_done[i] = true;
      order.push_back(i);
      break;
    }
  return order;
}

// A node that records an event, or waits for what the event was last recorded behind.
void use_event(const Work& work, const std::shared_ptr<Step>& step) {
  CUevent_st* event = find_event(work.event);
  if (!event) {
    no_such("an event");
  } else if (work.type == cudaGraphNodeTypeEventRecord) {
    event->recorded = step;
    event->capture.reset();
  } else if (event->recorded && !event->recorded->done) {
    step->after.push_back(event->recorded);
  }
}

void launch_in(CUstream_st& stream, const CUgraphExec_st& graph, Position where) {
  const Steps ends = ends_of(stream);
  Steps steps;
  for (const ExecutableNode& node : graph.nodes) {
    Steps after = node.after.empty() ? ends : Steps{};
    for (const std::size_t number : node.after) after.push_back(steps[number]);
    Work work = node.work;
    if (!node.is_enabled) work = {"a disabled node", where, nullptr, {}, false};
    steps.push_back(append_after(std::move(after), std::move(work), stream.device));
    if (node.work.event && node.is_enabled) use_event(node.work, steps.back());
  }
  const auto order = latest_first(graph.nodes);
  for (std::size_t i = 0; i < order.size(); i++) steps[order[i]]->turn = steps.front()->number + i;
  for (const auto& step : steps) step->graph_launch = steps.front()->number + 1;  // never 0
  steps.insert(steps.end(), ends.begin(), ends.end());
  stream.last = append_after(std::move(steps), {"cudaGraphLaunch", where, nullptr, {}, false}, stream.device);
}

cudaError_t instantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags) {
  if (sticky_error()) return sticky_error();
  if (!executable || !find_graph(graph)) return fail(cudaErrorInvalidValue);
  auto made = std::make_unique<CUgraphExec_st>(CUgraphExec_st{flags, {}});
  if (!add_nodes(*graph, {}, made->nodes)) {
    add_call_finding(Check::launch, "cycle", graph,
                     std::string(Call::under_way()->name) + " is given a graph with a cycle",
                     "a node depends on itself, through other nodes");
    return fail(cudaErrorInvalidValue);
  }
  executables().push_back(std::move(made));
  return *executable = executables().back().get(), cudaSuccess;
}

// Nodes of a clone of the graph, and of child graphs, count as nodes of the executable graph, too.
ExecutableNode* find_executable_node(cudaGraphExec_t executable, cudaGraphNode_t node) {
  CUgraphExec_st* found = find_executable(executable);
  if (!found) return nullptr;
  for (ExecutableNode& one : found->nodes)
    if (one.node == node) return &one;
  return fail(cudaErrorInvalidValue), nullptr;
}

cudaError_t replace_work(cudaGraphExec_t executable, cudaGraphNode_t node, Work work) {
  ExecutableNode* found = find_executable_node(executable, node);
  if (!found || found->work.type != work.type) return fail(cudaErrorInvalidValue);
  return found->work = std::move(work), cudaSuccess;
}

// Gives a node the work of other parameters.
template <typename... Parameters>
cudaError_t set_parameters(cudaGraphExec_t executable, cudaGraphNode_t node, Parameters... parameters) {
  Work work;
  const cudaError_t error = prepare_node_work(parameters..., work);
  return error ? error : replace_work(executable, node, std::move(work));
}

// What differs between the executable graph and the nodes that shall replace its own.
cudaGraphExecUpdateResult compare(const std::vector<ExecutableNode>& old,
                                  const std::vector<ExecutableNode>& nodes) {
  if (old.size() != nodes.size()) return cudaGraphExecUpdateErrorTopologyChanged;
  for (std::size_t i = 0; i < old.size(); i++) {
    if (old[i].work.type != nodes[i].work.type) return cudaGraphExecUpdateErrorNodeTypeChanged;
    if (old[i].after != nodes[i].after) return cudaGraphExecUpdateErrorTopologyChanged;
  }
  return cudaGraphExecUpdateSuccess;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags,
                                 Position where) {
  const Call call("cudaGraphInstantiate", where);
  return instantiate(executable, graph, flags);
}
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                 char* log, std::size_t size, Position where) {
  const Call call("cudaGraphInstantiate", where);
  if (error_node) *error_node = nullptr;
  if (log && size) *log = '\0';
  return instantiate(executable, graph, 0);
}
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags, Position where) {
  const Call call("cudaGraphInstantiateWithFlags", where);
  return instantiate(executable, graph, flags);
}
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable, Position where) {
  const Call call("cudaGraphExecDestroy", where);
  if (!find_executable(executable)) return cudaErrorInvalidValue;
  std::erase_if(executables(), [&](const auto& one) { return one.get() == executable; });
  return cudaSuccess;
}
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags, Position where) {
  const Call call("cudaGraphExecGetFlags", where);
  if (!find_executable(executable)) return cudaErrorInvalidValue;
  return *flags = executable->flags, cudaSuccess;
}
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream, Position where) {
  const Call call("cudaGraphUpload", where);
  if (!is_stream(stream)) return no_such("a stream");
  return find_executable(executable) ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream, Position where) {
  const Call call("cudaGraphLaunch", where);
  if (sticky_error()) return sticky_error();
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  if (!find_executable(executable)) return cudaErrorInvalidValue;
  if (found->capture) return refuse_in_capture("graph in capture", "the emulator does not support this");
  if (is_default(*found))
    if (const cudaError_t error = check_no_implicit_capture()) return error;
  if (!executable->nodes.empty()) launch_in(*found, *executable, where);
  return sticky_error();
}

cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result, Position where) {
  const Call call("cudaGraphExecUpdate", where);
  if (!find_executable(executable) || !find_graph(graph)) return cudaErrorInvalidValue;
  std::vector<ExecutableNode> nodes;
  const bool has_cycle = !add_nodes(*graph, {}, nodes);
  const auto compared = has_cycle ? cudaGraphExecUpdateError : compare(executable->nodes, nodes);
  if (result) *result = {compared, nullptr, nullptr};
  if (compared != cudaGraphExecUpdateSuccess) return fail(cudaErrorGraphExecUpdateFailure);
  for (std::size_t i = 0; i < nodes.size(); i++) executable->nodes[i].work = std::move(nodes[i].work);
  return cudaSuccess;
}
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters, Position where) {
  const Call call("cudaGraphExecKernelNodeSetParams", where);
  return set_parameters(executable, node, parameters);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters, Position where) {
  const Call call("cudaGraphExecMemcpyNodeSetParams", where);
  return set_parameters(executable, node, parameters);
}
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                               Position where) {
  const Call call("cudaGraphExecMemcpyNodeSetParams1D", where);
  return set_parameters(executable, node, to, from, bytes, kind, 2);
}
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters, Position where) {
  const Call call("cudaGraphExecMemsetNodeSetParams", where);
  return set_parameters(executable, node, parameters);
}
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters, Position where) {
  const Call call("cudaGraphExecHostNodeSetParams", where);
  return set_parameters(executable, node, parameters);
}
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaEvent_t event, Position where) {
  const Call call("cudaGraphExecEventRecordNodeSetEvent", where);
  return set_parameters(executable, node, event, cudaGraphNodeTypeEventRecord);
}
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               cudaEvent_t event, Position where) {
  const Call call("cudaGraphExecEventWaitNodeSetEvent", where);
  return set_parameters(executable, node, event, cudaGraphNodeTypeWaitEvent);
}
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned int is_enabled,
                                    Position where) {
  const Call call("cudaGraphNodeSetEnabled", where);
  ExecutableNode* found = find_executable_node(executable, node);
  return found ? (found->is_enabled = is_enabled, cudaSuccess) : cudaErrorInvalidValue;
}
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned int* is_enabled, Position where) {
  const Call call("cudaGraphNodeGetEnabled", where);
  const ExecutableNode* found = find_executable_node(executable, node);
  return found ? (*is_enabled = found->is_enabled, cudaSuccess) : cudaErrorInvalidValue;
}
