// Asynchronous copies that no thread has waited for.
#pragma once

#include <cstdint>

#include "../memory/access.h"

EMULATOR_BEGIN
namespace emulator {

void check_arrived(const Access& access);  // no copy to this memory is under way
void drop_copies(Thread& thread);          // it has ended

}  // namespace emulator
EMULATOR_END
