// How long the launches of the process take.
#pragma once

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

struct LaunchTimes {
  unsigned long ended = 0;        // launches
  double total = 0, longest = 0;  // seconds of those
  const char* longest_kernel = "";
  Position longest_where;
  double began = 0;  // of the launch that runs, in seconds of a clock
};
const LaunchTimes& launch_times();
double seconds_of_running_launch();  // 0: none runs

// Lives while a launch runs.
class LaunchTimer {
 public:
  LaunchTimer();
  ~LaunchTimer();
  LaunchTimer(const LaunchTimer&) = delete;
};

}  // namespace emulator
EMULATOR_END
