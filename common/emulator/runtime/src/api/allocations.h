// Memory of cudaMalloc and the like, for the rest of the runtime.
#pragma once

#include "../memory/allocation.h"

EMULATOR_BEGIN
namespace emulator {

bool is_registered(const Allocation& allocation);  // the host's own memory, by cudaHostRegister
bool is_symbol(const void* address);               // a variable of a file, and not a copy on a stack
void report_leaks();                               // as findings
void forget_allocations();                         // all are gone: cudaDeviceReset

}  // namespace emulator
EMULATOR_END
