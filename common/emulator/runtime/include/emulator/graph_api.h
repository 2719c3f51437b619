// CUDA's runtime API for graphs: nodes, capture of streams, executable graphs.
//
// A node is work that a stream could have, too. A launch of a graph enqueues the work of its nodes. Nodes
// that do not depend on each other run in the order that most likely shows a missing dependency.
#pragma once

#include "emulator/runtime_api.h"

EMULATOR_BEGIN
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode, EMULATOR_HERE);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph, EMULATOR_HERE);
cudaError_t cudaStreamIsCapturing(cudaStream_t stream, cudaStreamCaptureStatus* status, EMULATOR_HERE);
cudaError_t cudaStreamGetCaptureInfo(cudaStream_t stream, cudaStreamCaptureStatus* status,
                                     unsigned long long* id = nullptr, cudaGraph_t* graph = nullptr,
                                     const cudaGraphNode_t** dependencies = nullptr,
                                     const cudaGraphEdgeData** edges = nullptr, std::size_t* count = nullptr,
                                     EMULATOR_HERE);
cudaError_t cudaThreadExchangeStreamCaptureMode(cudaStreamCaptureMode* mode);

cudaError_t cudaGraphCreate(cudaGraph_t* graph, unsigned int flags, EMULATOR_HERE);
cudaError_t cudaGraphClone(cudaGraph_t* clone, cudaGraph_t graph, EMULATOR_HERE);
cudaError_t cudaGraphDestroy(cudaGraph_t graph, EMULATOR_HERE);

#define EMULATOR_NEW_NODE \
  cudaGraphNode_t *node, cudaGraph_t graph, const cudaGraphNode_t *dependencies, std::size_t count
cudaError_t cudaGraphAddKernelNode(EMULATOR_NEW_NODE, const cudaKernelNodeParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphAddMemcpyNode(EMULATOR_NEW_NODE, const cudaMemcpy3DParms* parameters, EMULATOR_HERE);
cudaError_t cudaGraphAddMemcpyNode1D(EMULATOR_NEW_NODE, void* to, const void* from, std::size_t bytes,
                                     cudaMemcpyKind kind, EMULATOR_HERE);
cudaError_t cudaGraphAddMemsetNode(EMULATOR_NEW_NODE, const cudaMemsetParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphAddHostNode(EMULATOR_NEW_NODE, const cudaHostNodeParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphAddEmptyNode(EMULATOR_NEW_NODE, EMULATOR_HERE);
cudaError_t cudaGraphAddEventRecordNode(EMULATOR_NEW_NODE, cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaGraphAddEventWaitNode(EMULATOR_NEW_NODE, cudaEvent_t event, EMULATOR_HERE);
// `parameters->dptr` is the memory that each launch of the graph allocates.
cudaError_t cudaGraphAddMemAllocNode(EMULATOR_NEW_NODE, cudaMemAllocNodeParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphAddMemFreeNode(EMULATOR_NEW_NODE, void* memory, EMULATOR_HERE);
cudaError_t cudaGraphAddChildGraphNode(EMULATOR_NEW_NODE, cudaGraph_t child, EMULATOR_HERE);
#undef EMULATOR_NEW_NODE
cudaError_t cudaGraphDestroyNode(cudaGraphNode_t node, EMULATOR_HERE);

cudaError_t cudaGraphKernelNodeGetParams(cudaGraphNode_t node, cudaKernelNodeParams* parameters,
                                         EMULATOR_HERE);
cudaError_t cudaGraphKernelNodeSetParams(cudaGraphNode_t node, const cudaKernelNodeParams* parameters,
                                         EMULATOR_HERE);
cudaError_t cudaGraphMemcpyNodeSetParams(cudaGraphNode_t node, const cudaMemcpy3DParms* parameters,
                                         EMULATOR_HERE);
cudaError_t cudaGraphMemsetNodeSetParams(cudaGraphNode_t node, const cudaMemsetParams* parameters,
                                         EMULATOR_HERE);
cudaError_t cudaGraphHostNodeSetParams(cudaGraphNode_t node, const cudaHostNodeParams* parameters,
                                       EMULATOR_HERE);

cudaError_t cudaGraphEventRecordNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event, EMULATOR_HERE);
cudaError_t cudaGraphEventRecordNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaGraphEventWaitNodeGetEvent(cudaGraphNode_t node, cudaEvent_t* event, EMULATOR_HERE);
cudaError_t cudaGraphEventWaitNodeSetEvent(cudaGraphNode_t node, cudaEvent_t event, EMULATOR_HERE);

// CUDA 12 has these functions also without the data of edges.
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                     std::size_t count, EMULATOR_HERE);
cudaError_t cudaGraphAddDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                     const cudaGraphNode_t* to, std::size_t count, EMULATOR_HERE);
cudaError_t cudaGraphRemoveDependencies(cudaGraph_t graph, const cudaGraphNode_t* from,
                                        const cudaGraphNode_t* to, const cudaGraphEdgeData* edges,
                                        std::size_t count, EMULATOR_HERE);
cudaError_t cudaGraphGetNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count, EMULATOR_HERE);
cudaError_t cudaGraphGetRootNodes(cudaGraph_t graph, cudaGraphNode_t* nodes, std::size_t* count,
                                  EMULATOR_HERE);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              cudaGraphEdgeData* edges, std::size_t* count, EMULATOR_HERE);
cudaError_t cudaGraphGetEdges(cudaGraph_t graph, cudaGraphNode_t* from, cudaGraphNode_t* to,
                              std::size_t* count, EMULATOR_HERE);
cudaError_t cudaGraphNodeGetType(cudaGraphNode_t node, cudaGraphNodeType* type, EMULATOR_HERE);
cudaError_t cudaGraphNodeFindInClone(cudaGraphNode_t* found, cudaGraphNode_t node, cudaGraph_t clone,
                                     EMULATOR_HERE);

cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags = 0,
                                 EMULATOR_HERE);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, cudaGraphNode_t* error_node,
                                 char* log, std::size_t size, EMULATOR_HERE);  // until CUDA 11
cudaError_t cudaGraphInstantiateWithFlags(cudaGraphExec_t* executable, cudaGraph_t graph,
                                          unsigned long long flags = 0, EMULATOR_HERE);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable, EMULATOR_HERE);
cudaError_t cudaGraphExecGetFlags(cudaGraphExec_t executable, unsigned long long* flags, EMULATOR_HERE);
cudaError_t cudaGraphUpload(cudaGraphExec_t executable, cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream, EMULATOR_HERE);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* result, EMULATOR_HERE);
cudaError_t cudaGraphExecKernelNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaKernelNodeParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphExecMemcpyNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemcpy3DParms* parameters, EMULATOR_HERE);
cudaError_t cudaGraphExecMemcpyNodeSetParams1D(cudaGraphExec_t executable, cudaGraphNode_t node, void* to,
                                               const void* from, std::size_t bytes, cudaMemcpyKind kind,
                                               EMULATOR_HERE);
cudaError_t cudaGraphExecMemsetNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                             const cudaMemsetParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphExecHostNodeSetParams(cudaGraphExec_t executable, cudaGraphNode_t node,
                                           const cudaHostNodeParams* parameters, EMULATOR_HERE);
cudaError_t cudaGraphExecEventRecordNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                                 cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaGraphExecEventWaitNodeSetEvent(cudaGraphExec_t executable, cudaGraphNode_t node,
                                               cudaEvent_t event, EMULATOR_HERE);
cudaError_t cudaGraphNodeSetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node, unsigned int is_enabled,
                                    EMULATOR_HERE);
cudaError_t cudaGraphNodeGetEnabled(cudaGraphExec_t executable, cudaGraphNode_t node,
                                    unsigned int* is_enabled, EMULATOR_HERE);
EMULATOR_END
