// Streams of work: launches, copies, functions of the host. In a plain program work is done no earlier than
// something waits for it, which is as late as CUDA allows: a host that forgot to wait finds old data. In a
// stage it is done at once.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {

// Memory of the host that work reads or writes: the host must not write it before, or not access it at all.
struct MemoryUse {
  const void* begin;
  std::size_t bytes;
  bool writes;
};

struct Work {
  std::string what;  // "kernel scale", "cudaMemcpyAsync to h_y"
  Position where;
  std::function<void()> run;
  std::vector<MemoryUse> uses = {};
  bool matters = true;  // that the host waits for it before the program ends
  bool is_launch = false;
};

// The error when there is no such stream, or that of the work, where it is done at once.
cudaError_t enqueue(cudaStream_t stream, Work work);
bool is_stream(cudaStream_t stream);
cudaError_t no_such(const char* what);  // complains about a stream or an event that does not exist

cudaError_t finish(cudaStream_t stream);  // all that has been given to it
cudaError_t finish_all();

unsigned long launches_done();
void report_unfinished();  // work that was not waited for becomes findings
const std::string* name_of_work(const void* work, Position* where);  // of a fence's `for_work`

}  // namespace emulator
EMULATOR_END
