// Stops a program that takes longer than EMULATOR_TIMEOUT, and says what took the time.
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "../src/memory/access.h"
#include "../src/scheduler/launch_times.h"
#include "../src/state/module_image.h"
#include "../src/state/settings.h"
#include "program.h"

namespace emulator {
namespace {

constexpr long kRetry = 20'000'000;  // ns until a stop that came at a bad moment is repeated
constexpr int kMostTries = 100;      // after which the program is stopped at any moment

double time_limit;  // seconds
int missed;
bool late = false;

std::string in_seconds(double seconds) {
  char text[32];
  std::snprintf(text, sizeof(text), "%.*g second%s", seconds < 1 ? 1 : 2, seconds, seconds == 1 ? "" : "s");
  return text;
}

// Whether the launch that runs took most of the program's time.
bool is_one_slow_launch() { return 2 * seconds_of_running_launch() > time_limit; }

// At a load or store, the runtime works on the kernel's stack, and knows the line.
std::string line_in_kernel(const void* context) {
  const void* pcs[kMostCalls] = {};
  if (Fiber::running()) calls_in_kernel(context, pcs);
  const std::string line = innermost_line(pcs).text;
  return line.empty() ? line_of(running.last_pc).text : line;
}

// "5123 launches took 58 seconds, the longest of them 0.02 seconds (kernel step, launched in steps.cu:5)"
std::string about_launches() {
  const LaunchTimes& times = launch_times();
  if (!times.ended) return "";
  const std::string many =
      times.ended == 1 ? "1 launch took " : std::to_string(times.ended) + " launches took ";
  return "     " + many + in_seconds(times.total + seconds_of_running_launch()) + ", the longest of them " +
         in_seconds(times.longest) + " (kernel " + times.longest_kernel + ", launched in " +
         line_at(times.longest_where) + ")\n";
}

// A block that waits for one that has not started waits forever.
std::string about_blocks() {
  const Schedule& schedule = running.launch->schedule;
  if (schedule.opened == schedule.blocks || schedule.resident.size() < schedule.most_resident) return "";
  return "     " + std::to_string(schedule.opened) + " of its " + std::to_string(schedule.blocks) +
         " blocks have started: the device runs " + std::to_string(schedule.most_resident) +
         " of them at once (EMULATOR_DEVICE=multiProcessorCount=N changes that), so none may wait for all "
         "others\n";
}

void on_limit(int, siginfo_t*, void* context) {
  late = true;
  const bool in_own_code = is_own_code(pc_of(context));
  if (!in_own_code && ++missed < kMostTries) return;  // perhaps inside malloc or printf
  end_with(too_late(is_one_slow_launch() ? line_in_kernel(context) : line_in_program(context)));
  _exit(kTimeout);
}

}  // namespace

bool is_late() { return late; }

std::string too_late(const std::string& line) {
  const bool is_kernel = is_one_slow_launch();
  char seconds[32];
  std::snprintf(seconds, sizeof(seconds), "%g second%s", time_limit, time_limit == 1 ? "" : "s");
  return "  error: " + (is_kernel ? std::string(describe(running.thread).text) : "the program") +
         " has not ended after " + seconds + " (EMULATOR_TIMEOUT)" + (line.empty() ? "" : ", in " + line) +
         "\n" + (is_kernel ? about_blocks() : about_launches());
}

void watch_time() {
  const char* setting = setting_of("EMULATOR_TIMEOUT");
  time_limit = setting ? std::atof(setting) : 60;
  if (time_limit <= 0) return;
  const int signal = SIGRTMIN + 8;
  catch_signal(signal, on_limit);
  sigevent event = {};
  event.sigev_notify = SIGEV_SIGNAL;
  event.sigev_signo = signal;
  timer_t timer;
  const itimerspec when{{0, kRetry},
                        {time_t(time_limit), long((time_limit - double(time_t(time_limit))) * 1e9)}};
  if (timer_create(CLOCK_MONOTONIC, &event, &timer) == 0) timer_settime(timer, 0, &when, nullptr);
}

}  // namespace emulator
