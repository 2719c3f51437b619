// The settings that a user gives in environment variables, such as EMULATOR_CHECKS=-races.
#pragma once

#include <string>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

// The value of a variable, null without it. In a process that was started with EMULATOR_FIXED=1 it stays what
// it was at the start: what a judge has set, the code that it judges cannot change.
const char* setting_of(const char* name);

// A word of the judge's that is in all that the runtime says of a program, so that the program cannot say it.
// It is the first line of the input where EMULATOR_NONCE is set, and empty elsewhere.
const std::string& nonce();
void read_nonce();  // before the program's own code runs; it finds no input

}  // namespace emulator
EMULATOR_END
