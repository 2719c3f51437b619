// Signals, the time limit and Ctrl-C end the launch instead of the process.
#pragma once

#include <functional>

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

// Starts a thread of the emulator's own, which may run a part of a launch. It has its own stack for signals,
// and all signals but those that a kernel causes are blocked there, so that the host's handlers run on the
// host's threads. False if the process may not have another thread.
bool start_core(std::function<void()> work);
int stop_signal();  // ends the part of the launch that its thread runs

double launch_time_limit();  // seconds; 0 for none

}  // namespace emulator
EMULATOR_END
