// The barriers that PTX has by number: see include/emulator/named_barriers.h.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

// Reports threads that wait at such a barrier; false if there are none.
bool add_deadlock_of_named_barriers();

}  // namespace emulator
EMULATOR_END
