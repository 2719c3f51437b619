// Copies under way: see include/emulator/async_copy.h.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void forget_async_copies();  // of the launch before

}  // namespace emulator
EMULATOR_END
