#include "launch_times.h"

#include <time.h>

#include "progress.h"

namespace emulator {
namespace {

LaunchTimes times;

double seconds_now() {
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

}  // namespace

const LaunchTimes& launch_times() { return times; }

double seconds_of_running_launch() { return running.launch ? seconds_now() - times.began : 0; }

LaunchTimer::LaunchTimer() { times.began = seconds_now(); }

LaunchTimer::~LaunchTimer() {
  clear_progress();
  const double seconds = seconds_of_running_launch();
  times.ended++;
  times.total += seconds;
  if (seconds < times.longest) return;
  times.longest = seconds;
  times.longest_kernel = running.launch->kernel;
  times.longest_where = running.launch->configuration.where;
}

}  // namespace emulator
