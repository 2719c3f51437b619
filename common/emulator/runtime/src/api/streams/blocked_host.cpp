#include "blocked_host.h"

#include <dirent.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <thread>
#include <utility>

#include "../../report/call.h"
#include "../../scheduler/signals.h"
#include "stream_queue.h"

namespace emulator {
namespace {

constexpr std::chrono::milliseconds kBetweenLooks(20);
constexpr int kLooks = 5;  // in sequence that find the host blocked, before its work runs

// Whether a thread waits in a futex, and without a time limit.
bool is_blocked(long thread) {
  char path[64], line[256];
  std::snprintf(path, sizeof(path), "/proc/self/task/%ld/syscall", thread);
  const std::unique_ptr<FILE, int (*)(FILE*)> file(std::fopen(path, "r"), std::fclose);
  if (!file || !std::fgets(line, sizeof(line), file.get())) return false;
  long call;
  unsigned long long address, operation, value, time_limit;
  return std::sscanf(line, "%ld %llx %llx %llx %llx", &call, &address, &operation, &value, &time_limit) ==
             5 &&
         call == SYS_futex && time_limit == 0;
}

// Whether all threads of the process but this one are blocked.
bool is_host_blocked() {
  const std::unique_ptr<DIR, int (*)(DIR*)> threads(opendir("/proc/self/task"), closedir);
  if (!threads) return false;
  const long self = syscall(SYS_gettid);
  while (const dirent* entry = readdir(threads.get())) {
    const long thread = std::atol(entry->d_name);
    if (thread > 0 && thread != self && !is_blocked(thread)) return false;
  }
  return true;
}

[[noreturn]] void watch() {
  for (int looks = 0;;) {
    std::this_thread::sleep_for(kBetweenLooks);
    looks = has_waiting_work() && is_host_blocked() ? looks + 1 : 0;
    if (looks < kLooks) continue;
    const Call call("the device", Position{});
    if (is_host_blocked()) finish_oldest();
    looks = 0;
  }
}

}  // namespace

void watch_for_blocked_host() {
  static bool was_called = false;
  if (std::exchange(was_called, true)) return;
  start_core(watch);  // else such a host waits until its time limit
}

}  // namespace emulator
