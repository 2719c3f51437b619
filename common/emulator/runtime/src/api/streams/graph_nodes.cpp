// The kinds of nodes: their parameters, and the work that they stand for.
#include <cstring>

#include "../../memory/devices.h"
#include "../../report/call.h"
#include "../kernels.h"
#include "../memory/allocation_calls.h"
#include "../memory/copies.h"
#include "graph.h"

namespace emulator {
namespace {

cudaError_t add_node(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                     std::size_t count, Work work) {
  if (!node || (count && !dependencies) || !find_graph(graph)) return fail(cudaErrorInvalidValue);
  const Nodes after(dependencies, dependencies + count);
  for (const cudaGraphNode_t before : after)
    if (!find_node(before) || before->graph != graph) return fail(cudaErrorInvalidValue);
  return *node = new_node(graph, std::move(work), after), cudaSuccess;
}

// A node changes its work, but not its kind.
cudaError_t replace_work(cudaGraphNode_t node, Work work) {
  if (!find_node(node)) return cudaErrorInvalidValue;
  if (node->work.type != work.type) return fail(cudaErrorInvalidValue);
  return node->work = std::move(work), cudaSuccess;
}

// Adds a node with the work of these parameters.
template <typename... Parameters>
cudaError_t add_node_of(cudaGraphNode_t* node, cudaGraph_t graph, const cudaGraphNode_t* dependencies,
                        std::size_t count, Parameters... parameters) {
  Work work;
  const cudaError_t error = prepare_node_work(parameters..., work);
  return error ? error : add_node(node, graph, dependencies, count, std::move(work));
}

// Gives a node the work of other parameters.
template <typename... Parameters>
cudaError_t set_parameters(cudaGraphNode_t node, Parameters... parameters) {
  Work work;
  const cudaError_t error = prepare_node_work(parameters..., work);
  return error ? error : replace_work(node, std::move(work));
}

// Keeps the values of the arguments, because the host's variables may change or end.
void keep_arguments(const cudaKernelNodeParams& parameters, CUgraphNode_st& node) {
  const KnownKernel& known = *find_kernel(parameters.func);
  node.kernel = parameters;
  node.arguments.clear();
  node.addresses.clear();
  for (std::size_t i = 0; i < known.sizes.size(); i++) {
    const char* value = static_cast<const char*>(parameters.kernelParams[i]);
    node.arguments.emplace_back(value, value + known.sizes[i]);
  }
  for (auto& value : node.arguments) node.addresses.push_back(value.data());
  node.kernel.kernelParams = node.addresses.data();
}

}  // namespace

cudaError_t prepare_node_work(const cudaKernelNodeParams* parameters, Work& work) {
  if (!parameters) return fail(cudaErrorInvalidValue);
  if (parameters->extra) return fail(cudaErrorNotSupported);
  const Call& call = *Call::under_way();
  const KnownKernel* known = find_kernel(parameters->func);
  if (!known) {
    add_call_finding(Check::launch, "unknown kernel", parameters->func,
                     std::string(call.name) + " is given parameters whose func is not a kernel",
                     "assign (void*)kernel in a file that declares the kernel");
    return fail(cudaErrorInvalidDeviceFunction);
  }
  const Configuration configuration{parameters->gridDim, parameters->blockDim, parameters->sharedMemBytes,
                                    nullptr, call.where};
  return prepare_work(known->prepare(*known, parameters->func, configuration, parameters->kernelParams),
                      work);
}

cudaError_t prepare_node_work(const cudaMemcpy3DParms* parameters, Work& work) {
  Rows to{}, from{};
  if (const cudaError_t error = boxes_of(parameters, to, from)) return error;
  PreparedCopy copy;
  if (const cudaError_t error = prepare_copy(to, from, parameters->kind, kNoArgument, kNoArgument, copy))
    return error;
  return work = work_of(copy), cudaSuccess;
}

cudaError_t prepare_node_work(void* to, const void* from, std::size_t bytes, cudaMemcpyKind kind,
                              int to_argument, Work& work) {
  PreparedCopy copy;
  if (const cudaError_t error =
          prepare_copy(one_row(to, bytes), one_row(from, bytes), kind, to_argument, to_argument + 1, copy))
    return error;
  return work = work_of(copy), cudaSuccess;
}

cudaError_t prepare_node_work(const cudaMemsetParams* p, Work& work) {
  const bool is_element = p && (p->elementSize == 1 || p->elementSize == 2 || p->elementSize == 4);
  if (!is_element || !p->width || !p->height) return fail(cudaErrorInvalidValue);
  const std::size_t width = p->width * p->elementSize;
  Side to;
  const Rows region{p->dst, p->height > 1 ? p->pitch : width, width, p->height};
  return prepare_set(region, p->value, p->elementSize, kNoArgument, work, to);
}

cudaError_t prepare_node_work(const cudaHostNodeParams* parameters, Work& work) {
  if (!parameters || !parameters->fn) return fail(cudaErrorInvalidValue);
  const Call& call = *Call::under_way();
  work = host_work(call.name, call.where, [given = *parameters] { given.fn(given.userData); });
  return cudaSuccess;
}

// What it does to the event happens when the graph is launched.
cudaError_t prepare_node_work(cudaEvent_t event, cudaGraphNodeType type, Work& work) {
  if (!find_event(event)) return no_such("an event");
  const Call& call = *Call::under_way();
  work = {call.name, call.where, nullptr, {}, false};
  work.type = type;
  work.event = event;
  return cudaSuccess;
}

namespace {

cudaError_t event_of_node(cudaGraphNode_t node, cudaGraphNodeType type, cudaEvent_t* event) {
  if (!event || !find_node(node) || node->work.type != type) return fail(cudaErrorInvalidValue);
  return *event = node->work.event, cudaSuccess;
}

}  // namespace
}  // namespace emulator

using namespace emulator;

cudaError_t cudaGraphAddKernelNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaKernelNodeParams* parameters, Position where) {
  const Call call("cudaGraphAddKernelNode", where);
  if (const cudaError_t error = add_node_of(node, graph, dependencies, count, parameters)) return error;
  return keep_arguments(*parameters, **node), cudaSuccess;
}
cudaError_t cudaGraphAddMemcpyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemcpy3DParms* parameters, Position where) {
  const Call call("cudaGraphAddMemcpyNode", where);
  return add_node_of(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddMemcpyNode1D(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, std::size_t count, void* to,
                                     const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                     Position where) {
  const Call call("cudaGraphAddMemcpyNode1D", where);
  return add_node_of(node, graph, dependencies, count, to, from, bytes, kind, 4);
}
cudaError_t cudaGraphAddMemsetNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                   const cudaGraphNode_t* dependencies, std::size_t count,
                                   const cudaMemsetParams* parameters, Position where) {
  const Call call("cudaGraphAddMemsetNode", where);
  return add_node_of(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddHostNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                 const cudaGraphNode_t* dependencies, std::size_t count,
                                 const cudaHostNodeParams* parameters, Position where) {
  const Call call("cudaGraphAddHostNode", where);
  return add_node_of(node, graph, dependencies, count, parameters);
}
cudaError_t cudaGraphAddEmptyNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                  const cudaGraphNode_t* dependencies, std::size_t count, Position where) {
  const Call call("cudaGraphAddEmptyNode", where);
  return add_node(node, graph, dependencies, count, {call.name, where, nullptr, {}, false});
}
cudaError_t cudaGraphAddEventRecordNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                        const cudaGraphNode_t* dependencies, std::size_t count,
                                        cudaEvent_t event, Position where) {
  const Call call("cudaGraphAddEventRecordNode", where);
  return add_node_of(node, graph, dependencies, count, event, cudaGraphNodeTypeEventRecord);
}
cudaError_t cudaGraphAddEventWaitNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                      const cudaGraphNode_t* dependencies, std::size_t count,
                                      cudaEvent_t event, Position where) {
  const Call call("cudaGraphAddEventWaitNode", where);
  return add_node_of(node, graph, dependencies, count, event, cudaGraphNodeTypeWaitEvent);
}
cudaError_t cudaGraphAddMemAllocNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                     const cudaGraphNode_t* dependencies, std::size_t count,
                                     cudaMemAllocNodeParams* parameters, Position where) {
  const Call call("cudaGraphAddMemAllocNode", where);
  if (!parameters || check_device(parameters->poolProps.location.id)) return fail(cudaErrorInvalidValue);
  Work work;
  const cudaError_t error =
      prepare_allocation(&parameters->dptr, parameters->bytesize, parameters->poolProps.location.id, work);
  return error ? error : add_node(node, graph, dependencies, count, std::move(work));
}
cudaError_t cudaGraphAddMemFreeNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                    const cudaGraphNode_t* dependencies, std::size_t count, void* memory,
                                    Position where) {
  const Call call("cudaGraphAddMemFreeNode", where);
  Work work;
  const cudaError_t error = prepare_free(memory, work);
  return error ? error : add_node(node, graph, dependencies, count, std::move(work));
}
cudaError_t cudaGraphAddChildGraphNode(cudaGraphNode_t* node, cudaGraph_t graph,
                                       const cudaGraphNode_t* dependencies, std::size_t count,
                                       cudaGraph_t child, Position where) {
  const Call call("cudaGraphAddChildGraphNode", where);
  cudaGraph_t copy;
  if (const cudaError_t error = cudaGraphClone(&copy, child, where)) return error;
  if (const cudaError_t error =
          add_node(node, graph, dependencies, count, {call.name, where, nullptr, {}, false}))
    return error;
  return (*node)->child = copy, cudaSuccess;
}

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters,
                                         Position where) {
  const Call call("cudaGraphKernelNodeGetParams", where);
  if (!find_node(node) || node->work.type != cudaGraphNodeTypeKernel) return fail(cudaErrorInvalidValue);
  if (!node->kernel.func) return fail(cudaErrorNotSupported);  // of a captured launch
  return *parameters = node->kernel, cudaSuccess;
}
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters,
                                         Position where) {
  const Call call("cudaGraphKernelNodeSetParams", where);
  if (const cudaError_t error = set_parameters(node, parameters)) return error;
  return keep_arguments(*parameters, *node), cudaSuccess;
}
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters,
                                         Position where) {
  const Call call("cudaGraphMemcpyNodeSetParams", where);
  return set_parameters(node, parameters);
}
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters,
                                         Position where) {
  const Call call("cudaGraphMemsetNodeSetParams", where);
  return set_parameters(node, parameters);
}
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters,
                                       Position where) {
  const Call call("cudaGraphHostNodeSetParams", where);
  return set_parameters(node, parameters);
}
cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event, Position where) {
  const Call call("cudaGraphEventRecordNodeGetEvent", where);
  return event_of_node(node, cudaGraphNodeTypeEventRecord, event);
}
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event, Position where) {
  const Call call("cudaGraphEventRecordNodeSetEvent", where);
  return set_parameters(node, event, cudaGraphNodeTypeEventRecord);
}
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event, Position where) {
  const Call call("cudaGraphEventWaitNodeGetEvent", where);
  return event_of_node(node, cudaGraphNodeTypeWaitEvent, event);
}
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event, Position where) {
  const Call call("cudaGraphEventWaitNodeSetEvent", where);
  return set_parameters(node, event, cudaGraphNodeTypeWaitEvent);
}
