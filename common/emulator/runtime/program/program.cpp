// The runtime's work before and after the main of a plain program.
//
// Linked into programs only. Their findings are kept until they end; then the report goes to the file
// descriptor that EMULATOR_REPORT names, or to stderr.
#include "program.h"

#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/api/memory/allocations.h"
#include "../src/api/streams/streams.h"
#include "../src/report/call.h"
#include "../src/report/launch_limits.h"
#include "../src/state/launch_state.h"
#include "../src/state/module_image.h"
#include "../src/state/settings.h"

namespace emulator {
namespace {

constexpr int kMostForks = 64;
constexpr int kSaid = 1 << 20;  // added to the count when the message has been written

int report_to = STDERR_FILENO;
bool is_child = false, is_over = false;
std::atomic<int>* forks;  // shared with all children

void before_fork() {
  note("what a forked child does is not checked");
  const int count = forks ? ++*forks : 0;
  if (count <= kMostForks) return;
  if (count == kMostForks + 1) {
    say("emulator: the program forked more than " + std::to_string(kMostForks) + " times and was ended\n");
    *forks += kSaid;
  }
  // The end of any process may be the end of all, so wait until the message is written.
  for (int wait = 0; wait < 1000 && *forks < kSaid; wait++) usleep(1000);
  _exit(kFindings);
}

void after_fork_in_child() {
  is_child = true;
  set_sticky_error(cudaErrorInitializationError);  // as CUDA does
}

std::string how_many(unsigned long number, const char* what) {
  return std::to_string(number) + " " + what +
         (number == 1                          ? ""
          : what[std::strlen(what) - 1] == 'h' ? "es"
                                               : "s");
}

// "; checks switched off: races, leaks"; empty if every check is on.
std::string left_out() {
  std::string text;
  for (int check = 0; check <= int(Check::leaks); check++)
    if (!is_on(Check(check)))
      text += (text.empty() ? "; checks switched off: " : ", ") + std::string(name_of(Check(check)));
  return text;
}

void end(int status, void*) {
  if (is_child || is_over) return;
  std::fflush(nullptr);
  if (is_late()) {  // the signal interrupted a sleep or a wait
    end_with(too_late(""));
    _exit(kTimeout);
  }
  if (!sticky_error()) {
    report_unfinished();
    if (status == 0) report_leaks(kAllDevices);  // a program that stops at an error frees nothing
  }
  add_unchecked();
  const bool is_wrong = has_errors();
  end_with("");
  if (status == 0 && is_wrong) _exit(kFindings);
}

__attribute__((constructor(101))) void begin() {
  collect_until_exit = true;
  read_nonce();
  read_settings();
  find_own_code();
  if (const char* descriptor = std::getenv("EMULATOR_REPORT")) {
    report_to = std::atoi(descriptor);
    fcntl(report_to, F_SETFD, FD_CLOEXEC);
    unsetenv("EMULATOR_REPORT");
  }
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  void* shared = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared != MAP_FAILED) forks = new (shared) std::atomic<int>(0);
  pthread_atfork(before_fork, nullptr, after_fork_in_child);
  on_exit(end, nullptr);  // the first to be registered is the last to be called
  watch_host();
  watch_time();
}

}  // namespace

void say(const std::string& text) {
  for (std::size_t at = 0; at < text.size();) {
    const ssize_t written = write(report_to, text.data() + at, text.size() - at);
    if (written <= 0) return;
    at += std::size_t(written);
  }
}

void end_with(const std::string& crash) {
  if (is_child || is_over) return;
  is_over = true;
  std::string text = crash;
  if (has_findings()) text += take_report();
  if (text.empty()) {
    const unsigned long launches = launches_done();
    text = launches ? "emulator: " + how_many(launches, "launch") + ", no problem found" + left_out() + "\n"
                    : "emulator: no kernel was launched, so there was nothing to check\n";
  } else {
    text = "the emulator found:\n" + text;
  }
  for (const char* remark : notes()) text += "  note: " + std::string(remark) + "\n";
  say(nonce().empty() ? text : "\n" + nonce() + "\n" + text);
}

}  // namespace emulator
