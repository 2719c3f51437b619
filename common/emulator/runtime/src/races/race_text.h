// The messages of the checks for races and for uninitialised memory.
#pragma once

#include <string>

#include "../report/report.h"
#include "races.h"

EMULATOR_BEGIN
namespace emulator {

// What identifies the memory of an access: the same for all of a variable or an allocation.
const void* memory_of(const Access& access);
// "partial[16], shared memory", "element [0, 3] of z"
std::string element_at(const Access& access, const std::byte* address);
Finding finding_of(const Conflict& conflict);
// Plain stores of two threads to global memory.
bool are_two_stores(const Conflict& conflict);

}  // namespace emulator
EMULATOR_END
