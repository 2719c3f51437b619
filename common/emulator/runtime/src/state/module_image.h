// The location of this extension or program in memory: its code, its constants and its variables.
#pragma once

#include <string>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void find_own_code();                   // once, before the functions below, which signal handlers may call
bool is_own_code(const void* address);  // of the kernels and the runtime
bool is_own_data(const void* address);  // its constants and variables
bool is_own_variable(const void* address);  // those that can be written
bool is_in_variable(const void* address);   // inside a variable, not between two
// The name of a variable of the host at file scope, in which an address is; empty for all others, such as those
// of the emulator, of the standard library, of a template, and inside a function.
std::string host_variable_at(const void* address);

}  // namespace emulator
EMULATOR_END
