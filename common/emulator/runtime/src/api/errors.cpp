// CUDA's functions for errors: the last one of each thread, and their names.
#include "../report/call.h"
#include "../report/launch_limits.h"
#include "emulator/error_list.h"

using namespace emulator;

cudaError_t cudaPeekAtLastError() {
  if (last_error() && !is_called_by_kernel()) host_checked_error();
  return sticky_error() ? sticky_error() : last_error();
}

cudaError_t cudaGetLastError() {
  const cudaError_t error = cudaPeekAtLastError();
  clear_last_error();
  return error;
}

const char* cudaGetErrorName(cudaError_t error) {
  switch (int(error)) {
#define EMULATOR_NAME_OF(name, text) \
  case name:                         \
    return #name;
    EMULATOR_ERRORS(EMULATOR_NAME_OF)
  }
  return "unrecognized error code";
}

const char* cudaGetErrorString(cudaError_t error) {
  switch (int(error)) {
#define EMULATOR_TEXT_OF(name, text) \
  case name:                         \
    return text;
    EMULATOR_ERRORS(EMULATOR_TEXT_OF)
  }
  return "unrecognized error code";
}
