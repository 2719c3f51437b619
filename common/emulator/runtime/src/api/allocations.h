// Memory from cudaMalloc and related functions, for the rest of the runtime.
#pragma once

#include "../memory/allocation.h"

EMULATOR_BEGIN
namespace emulator {

bool is_registered(const Allocation& allocation);  // host memory registered by cudaHostRegister
bool is_symbol(const void* address);               // a variable at file scope, not a copy on a stack
void report_leaks();                               // as findings
void forget_allocations();                         // cudaDeviceReset frees all of them

}  // namespace emulator
EMULATOR_END
