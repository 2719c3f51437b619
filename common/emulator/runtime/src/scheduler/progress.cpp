#include "progress.h"

#include <unistd.h>

#include <cstdio>

#include "../state/launch_state.h"
#include "../state/settings.h"
#include "launch_times.h"

namespace emulator {
namespace {

constexpr double kFirstShown = 5, kBetween = 1;  // seconds
constexpr unsigned kStepsBetween = 256;          // between two looks at the clock
constexpr const char* kClearLine = "\r\x1b[K";

struct Progress {
  unsigned steps = 0;
  double shown_after = 0;  // seconds of the launch; 0: not shown
};
Progress progress;

bool is_wanted() {
  const char* setting = setting_of("EMULATOR_PROGRESS");
  return setting && *setting ? *setting != '0' : isatty(STDERR_FILENO) != 0;
}

void print(const std::string& text) {
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;  // stderr is closed
}

}  // namespace

void show_progress() {
  if (++progress.steps % kStepsBetween) return;
  const double seconds = seconds_of_running_launch();
  if (seconds < kFirstShown || seconds < progress.shown_after + kBetween || !is_wanted()) return;
  progress.shown_after = seconds;
  const Schedule& schedule = running.launch->schedule;
  char text[512];
  std::snprintf(
      text, sizeof(text), "%semulator: kernel %.200s, %llu of %llu blocks, %.0f s", kClearLine,
      running.launch->kernel,
      static_cast<unsigned long long>(schedule.opened * schedule.cluster_size() - schedule.resident.size()),
      static_cast<unsigned long long>(schedule.blocks), seconds);
  print(text);
}

void clear_progress() {
  if (progress.shown_after > 0) print(kClearLine);
  progress = {};
}

}  // namespace emulator
