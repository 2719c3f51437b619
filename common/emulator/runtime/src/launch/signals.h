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

double launch_time_limit();  // seconds; 0 for none

}  // namespace emulator
EMULATOR_END
