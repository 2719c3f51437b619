// What the functions of CUDA's API share: the call under way, the sticky error, how a call adds a finding.
#pragma once

#include <string>
#include <vector>

#include "../report/report.h"
#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {

// Around each function of the API: one OS thread at a time; a check inside it knows the call's place.
class Call {
 public:
  Call(const char* name, Position where);
  ~Call();
  Call(const Call&) = delete;
  static const Call* under_way();  // the outermost; null while none is

  const char* const name;
  const Position where;
};

// What a kernel did to the device: from then on every call returns it, until cudaDeviceReset.
cudaError_t sticky_error();
void set_sticky_error(cudaError_t error);

// A finding about the call that is under way. `problem` is a literal that identifies its kind.
void add_call_finding(Check check, const char* problem, const void* about, std::string what,
                      std::string detail, bool is_warning = false);

// A remark for the end of the report, once.
void note(const char* remark);
const std::vector<const char*>& notes();

// Argument number `which` of the call as the program's source has it, without casts and `&`: "d_x" for the
// first of `cudaMalloc((void**)&d_x, n)`. Empty where the source cannot be read.
std::string argument_text(const char* function, Position where, int which);

}  // namespace emulator
EMULATOR_END
