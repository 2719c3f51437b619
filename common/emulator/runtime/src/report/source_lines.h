// Source lines of program counters, and the calls that led to one.
#pragma once

#include <string>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

const void* pc_of(const void* context);  // the program counter, from what a signal handler is given
// The program counter in the kernel, or in a function that it called, and those of the enclosing calls as far
// as the stack shows them, innermost first. Only those in the code of this extension, which includes the
// runtime.
constexpr int kMostCalls = 8;
void calls_in_kernel(const void* context, const void* (&pcs)[kMostCalls]);
SourceLine innermost_line(const void* const (&pcs)[kMostCalls]);  // the first one in the learner's code

const char* short_name(const char* path);  // relative to the working directory, if below it
std::string at(Position where);            // "lltm_kernel.cu:23:5"
// "lltm_kernel.cu:23": for a line that the rewriter changed, in which columns are not the learner's.
std::string line_at(Position where);

}  // namespace emulator
EMULATOR_END
