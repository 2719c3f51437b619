// Shared parts of CUDA's API functions: the current call, the sticky error, and findings of a call.
#pragma once

#include <string>
#include <vector>

#include "emulator/runtime_api.h"
#include "report.h"

EMULATOR_BEGIN
namespace emulator {

// One object per API call. It allows one OS thread at a time, and gives checks the position of the call.
class Call {
 public:
  Call(const char* name, Position where);
  ~Call();
  Call(const Call&) = delete;
  static const Call* under_way();  // the outermost call; null if there is none

  const char* const name;
  const Position where;
};

// The error of a kernel that broke the device: every later call returns it, until cudaDeviceReset.
cudaError_t sticky_error();
void set_sticky_error(cudaError_t error);
cudaError_t last_error();  // of the calling thread: the host's, or a kernel's
void clear_last_error();
bool has_failed_allocation();  // since the program began, because there was not enough memory

// Adds a finding about the current call. `problem` is a literal that identifies its kind.
void add_call_finding(Check check, const char* problem, const void* about, std::string what,
                      std::string detail, bool is_warning = false);
cudaError_t no_such(const char* what);  // the call is given "a stream" or another object that does not exist

// Adds a remark to the end of the report, once.
void note(const char* remark);
const std::vector<const char*>& notes();
void note_skipped_work();  // a launch or a copy, because of the sticky error

// Argument number `which` of the call as the program's source has it, without casts and `&`: "d_x" for the
// first of `cudaMalloc((void**)&d_x, n)`. Empty if the source cannot be read.
std::string argument_text(const char* function, Position where, int which);
std::string line_of_source(const char* path, unsigned number);  // from 1; empty if it cannot be read

}  // namespace emulator
EMULATOR_END
