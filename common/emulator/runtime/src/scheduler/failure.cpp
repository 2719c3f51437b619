#include "failure.h"

#include <dlfcn.h>
#include <signal.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "../report/report.h"
#include "../state/events.h"
#include "cores.h"
#include "signals.h"

namespace emulator {
namespace {

struct Failure {
  char reason[8192] = "";  // empty until the message of a fault is written
  Fault fault = {};
  const Running* core = nullptr;  // that has recorded the fault, and writes the message
};
Failure launch_failure;

const char* fault_name(int signal) {
  switch (signal) {
    case SIGFPE:
      return "divides an integer by zero (a GPU continues with an arbitrary number)";
    case SIGILL:
      return "stops at a trap";
    case SIGBUS:
      return "accesses memory that does not exist";
    default:
      return "accesses memory that does not belong to it";
  }
}

// ", in lltm_kernel.cu:23", or where the thread waits; empty if unknown.
std::string place_of_fault(const Fault& fault) {
  const Thread* thread = running.thread;
  if (!fault.pcs[0] && thread && thread->operation > Operation::yield)
    return std::string(", at ") + name_of(thread->operation) + " in " + line_at(thread->where);
  SourceLine line = innermost_line(fault.pcs);
  // A stopped thread without a line was in the runtime because of its last access.
  if (!line.text[0] && thread && fault.kind >= Fault::timeout) line = line_of(running.last_pc);
  return line.text[0] ? std::string(", in ") + line.text : "";
}

void describe_fault(const Fault& fault) {
  const std::string place = place_of_fault(fault);
  const bool is_access = fault.signal == SIGSEGV || fault.signal == SIGBUS;
  const double limit = launch_time_limit();
  switch (fault.kind) {
    case Fault::fault:
      if (is_access) {
        set_error(cudaErrorIllegalAddress);
        set_failure("%s: address %p%s", fault_name(fault.signal), fault.address, place.c_str());
      } else {
        set_failure("%s%s", fault_name(fault.signal), place.c_str());
      }
      break;
    case Fault::overflow:
      set_failure("overflows its stack of 512 KiB (infinite recursion, or large local arrays)%s",
                  place.c_str());
      break;
    case Fault::timeout:
      set_error(cudaErrorLaunchTimeout);
      set_failure("has not ended after %g second%s (EMULATOR_TIMEOUT)%s%s", limit, limit == 1 ? "" : "s",
                  place.c_str(), waiting_threads().c_str());
      break;
    case Fault::interrupt:
      set_failure("was interrupted%s", place.c_str());
      break;
    case Fault::none:
      break;
  }
}

}  // namespace

std::atomic<bool> launch_has_failed = false;

bool has_failed_here() { return has_failed() && launch_failure.core == &running; }

void clear_failure() {
  launch_has_failed = false;
  launch_failure.reason[0] = 0;
  launch_failure.fault = {};
}

void record_fault(const Fault& fault) {
  if (is_stopped() || launch_has_failed.exchange(true)) return;
  launch_failure.fault = fault;
  launch_failure.core = &running;
}

const char* failure() {
  if (!launch_has_failed) return nullptr;
  if (!launch_failure.reason[0] && launch_failure.core == &running) describe_fault(launch_failure.fault);
  return launch_failure.reason;
}

void set_error(cudaError_t error) {
  if (running.launch && running.launch->error == cudaSuccess) running.launch->error = error;
}

void set_failure(const char* what, ...) {
  if (!launch_has_failed.exchange(true)) launch_failure.core = &running;
  set_error(cudaErrorLaunchFailure);
  char* reason = launch_failure.reason;
  if (reason[0]) return;
  // The report of a program names the thread itself.
  const std::string subject = collect_until_exit ? "" : std::string(describe(running.thread).text) + " ";
  const int length = std::snprintf(reason, sizeof(launch_failure.reason), "%s", subject.c_str());
  va_list arguments;
  va_start(arguments, what);
  std::vsnprintf(reason + length, sizeof(launch_failure.reason) - std::size_t(length), what, arguments);
  va_end(arguments);
}

void abandon(const char* what, ...) {
  running.in_kernel = false;
  char text[4096];
  va_list arguments;
  va_start(arguments, what);
  std::vsnprintf(text, sizeof(text), what, arguments);
  va_end(arguments);
  if (!Fiber::running()) throw std::runtime_error(text);
  take_turn();
  set_failure("%s", text);
  Fiber::leave();
}

}  // namespace emulator

// The function that `assert` calls. Only the code of this extension finds this definition first.
extern "C" __attribute__((visibility("hidden"))) void __assert_fail(const char* assertion, const char* file,
                                                                    unsigned line,
                                                                    const char* function) noexcept {
  if (emulator::Fiber::running()) {
    emulator::set_error(cudaErrorAssert);
    emulator::abandon("fails the assertion `%s` in %s:%u", assertion, emulator::short_name(file), line);
  }
  using AssertFail = void (*)(const char*, const char*, unsigned, const char*);
  if (const auto original = reinterpret_cast<AssertFail>(dlsym(RTLD_NEXT, "__assert_fail")))
    original(assertion, file, line, function);
  std::abort();
}
