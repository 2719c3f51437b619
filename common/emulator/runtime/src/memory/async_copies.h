// Asynchronous copies that no thread has waited for.
#pragma once

#include <cstdint>

#include "access.h"

EMULATOR_BEGIN
namespace emulator {

void check_arrived(const Access& access);                         // no copy to this memory is under way
void drop_copies(Thread& thread);                                 // it has ended
void finish_copies_of(const void* barrier, std::uint32_t phase);  // a thread has waited for this phase

}  // namespace emulator
EMULATOR_END
