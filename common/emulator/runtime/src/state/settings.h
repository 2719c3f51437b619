// The settings that a user gives in environment variables, such as EMULATOR_CHECKS=-races.
#pragma once

#include <string>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

// The value of a variable, or null. In a process that was started with EMULATOR_FIXED=1, this is the value at
// the start, so the judged code cannot change the judge's settings.
const char* setting_of(const char* name);

// A secret of the judge that marks all output of the runtime, so that the program cannot forge it. It is the
// first line of the input if EMULATOR_NONCE is set, and empty otherwise.
const std::string& nonce();
void read_nonce();  // before the program's own code runs; the program then finds no input

}  // namespace emulator
EMULATOR_END
