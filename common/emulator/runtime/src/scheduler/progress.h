// Shows how far a long launch is: a line on stderr that is rewritten once a second. EMULATOR_PROGRESS=1 or 0
// decides; otherwise it is shown if stderr is a terminal.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void show_progress();   // between two steps of a launch; most calls do nothing
void clear_progress();  // when the launch has ended, before anything else is printed

}  // namespace emulator
EMULATOR_END
