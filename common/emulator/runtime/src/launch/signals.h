// Signals, the time limit and Ctrl-C end the launch instead of the process.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

// Handles signals during its lifetime: around one launch.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
};

// The same for a thread that runs a part of a launch and nothing else; the handlers are those of the launch.
void handle_signals_of_core();
int stop_signal();  // ends the part of the launch that its thread runs

double launch_time_limit();  // seconds; 0 for none

}  // namespace emulator
EMULATOR_END
