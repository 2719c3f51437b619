// Streams of work: launches, copies, host functions. In a plain program, work runs only when something waits
// for it, which is as late as CUDA allows. So a host that forgets to wait finds old data. In a stage, work
// runs at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/launch.h"
#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {

// Host memory that work reads or writes. Until the work is done, the host must not write it, or not access
// it.
struct MemoryUse {
  const void* begin;
  std::size_t bytes;
  bool writes;
  std::size_t pitch = 0, width = 0;  // of rows with gaps between them; 0: all of it is used
};

struct Work {
  std::string what;  // "kernel scale", "cudaMemcpyAsync to h_y"
  Position where;
  std::function<void()> run;
  std::vector<MemoryUse> uses = {};
  bool matters = true;  // whether the host must wait for it before the program ends
  cudaGraphNodeType type = cudaGraphNodeTypeEmpty;  // of the node that it becomes in a graph
  cudaEvent_t event = nullptr;                      // that a node of a graph records or waits for
  // Of a kernel it is unknown how far past a pointer it accesses, and which variables it uses.
  bool uses_are_exact = true;

  bool is_launch() const { return type == cudaGraphNodeTypeKernel; }
};

// The work of a launch, unless a device would refuse it.
cudaError_t prepare_work(LaunchInfo info, Work& work);
// Returns an error if the stream does not exist, or the error of work that runs at once.
cudaError_t enqueue(cudaStream_t stream, Work work);
bool is_stream(cudaStream_t stream);
bool is_captured(cudaStream_t stream);
// Reports the current call, and makes captures invalid, if it is not allowed while a stream is captured into
// a graph.
cudaError_t check_no_capture();
// The same for calls that use a captured stream in a way that a graph cannot contain.
cudaError_t refuse_in_capture(const char* problem, std::string detail);
Work host_work(const char* given_to, Position where, std::function<void()> function);

cudaError_t finish(cudaStream_t stream);  // all work in it
cudaError_t finish_device(int device);
cudaError_t finish_all();

unsigned long launches_done();
void report_unfinished();  // work that was not waited for becomes findings
const std::string* name_of_work(const void* work, Position* where);  // of a fence's `for_work`

}  // namespace emulator
EMULATOR_END
