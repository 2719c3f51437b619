// What would end the process, or never end, ends the launch instead: signals, a limit on time, Ctrl-C.
#pragma once

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

// Handles signals for as long as it lives: around one launch.
class SignalGuard {
 public:
  SignalGuard();
  ~SignalGuard();
  SignalGuard(const SignalGuard&) = delete;
};

double launch_time_limit();  // seconds; 0 for none

}  // namespace emulator
EMULATOR_END
