// Graphs: conditional nodes
// Support: refused: the emulator does not support cudaGraphConditionalHandleCreate
#include <cuda_runtime.h>

int main() {
  cudaGraph_t graph;
  cudaGraphConditionalHandle handle;
  cudaGraphCreate(&graph, 0);
  return cudaGraphConditionalHandleCreate(&handle, graph, 1, cudaGraphCondAssignDefault);
}
