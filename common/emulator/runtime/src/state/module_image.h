// The location of this extension or program in memory: its code, its constants and its variables.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void find_own_code();                   // once, before the functions below, which signal handlers may call
bool is_own_code(const void* address);  // of the kernels and the runtime
bool is_own_data(const void* address);  // its constants and variables
bool is_own_variable(const void* address);  // those that can be written
bool is_in_variable(const void* address);   // inside a variable, not between two

}  // namespace emulator
EMULATOR_END
