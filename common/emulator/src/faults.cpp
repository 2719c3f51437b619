// What would end the process, or never end, ends the launch instead: signals, failed assertions, a limit on
// time, Ctrl-C.
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <stdexcept>
#include <string>

#include "access.h"
#include "barriers.h"
#include "launch_state.h"
#include "report.h"

namespace emulator {

volatile bool stop_wanted = false;

namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr long kAgain = 10'000'000;  // ns until a stop that came at a bad moment is tried again
constexpr int kTries = 500;          // after which any moment will do

// What a handler found. It only notes it; the words are made later, on the scheduler's stack.
struct Found {
  enum What { nothing, fault, overflow, timeout, interrupt } what;
  int signal;
  const void* address;
  const void* counters[kCalls];  // where it was, and the calls that led there
};

bool failed = false;
char reason[8192];
Found found;
struct sigaction before[NSIG];
pthread_t owner;
timer_t timer;
bool has_timer;
double limit;
int tries;
Found::What stop_reason;
// Leaves the kernel from inside a handler. The handler's own stack is not in the way.
[[noreturn]] void leave_from(int signal) {
  in_kernel = false;
  failed = true;
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  Fiber::leave();
}

void call(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Fiber* fiber = Fiber::running();
  if (pthread_equal(pthread_self(), owner) && fiber && !failed) {
    const bool overflow = signal == SIGSEGV && fiber->guards(info->si_addr);
    if (overflow || in_kernel) {
      found = {overflow ? Found::overflow : Found::fault, signal, info->si_addr, {}};
      if (overflow)
        found.counters[0] = counter_of(context);
      else
        calls_in_kernel(context, found.counters);
      leave_from(signal);
    }
  }
  // Not the kernel's fault: whoever was here before us has a word, or the process ends as it would without
  // us.
  const struct sigaction& previous = before[signal];
  if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    sigaction(signal, &previous, nullptr);
    if (info->si_code <= 0) raise(signal);
  } else {
    call(previous, signal, info, context);
  }
}

void arm_timer(long seconds, long nanoseconds) {
  const itimerspec when{{0, kAgain}, {seconds, nanoseconds}};
  if (has_timer) timer_settime(timer, 0, &when, nullptr);
}

int stop_signal() { return SIGRTMIN + 7; }

void on_stop(int signal, siginfo_t*, void* context) {
  if (!pthread_equal(pthread_self(), owner) || failed) return;
  if (stop_reason == Found::nothing) stop_reason = Found::timeout;
  stop_wanted = true;
  if (!in_kernel || !Fiber::running()) return;
  if (!is_own_code(counter_of(context)) && ++tries < kTries) return;  // perhaps inside malloc or printf
  found = {stop_reason, signal, nullptr, {}};
  calls_in_kernel(context, found.counters);
  leave_from(signal);
}

void on_interrupt(int signal, siginfo_t* info, void* context) {
  call(before[SIGINT], signal, info, context);  // Python's makes a note, and raises KeyboardInterrupt later
  stop_reason = Found::interrupt;
  stop_wanted = true;
  if (has_timer) arm_timer(0, 1);
}

using Handler = void (*)(int, siginfo_t*, void*);

bool is_handled_by(const struct sigaction& action, Handler handler) {
  return action.sa_flags & SA_SIGINFO && action.sa_sigaction == handler;
}

// While we run, others may put a handler over ours, which they take away later: ours may be there already,
// and only ours is taken away.
void handle(int signal, Handler handler) {
  struct sigaction action = {}, previous;
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &previous);
  if (!is_handled_by(previous, handler)) before[signal] = previous;
}

void restore(int signal, Handler handler) {
  struct sigaction now;
  sigaction(signal, nullptr, &now);
  if (is_handled_by(now, handler)) sigaction(signal, &before[signal], nullptr);
}

const char* fault_name(int signal) {
  switch (signal) {
    case SIGFPE:
      return "divides an integer by zero (a GPU goes on with an arbitrary number)";
    case SIGILL:
      return "stops at a trap";
    case SIGBUS:
      return "accesses memory that is not there";
    default:
      return "accesses memory that is not its own";
  }
}

void put_found_in_words() {
  if (!failed || reason[0]) return;
  SourceLine line = innermost_line(found.counters);
  const bool waits = !found.counters[0] && current && current->operation > Operation::turn;
  if (waits)
    std::snprintf(line.text, sizeof(line.text), "%s in %s:%u", name_of(current->operation),
                  short_name(current->where.file_name()), unsigned(current->where.line()));
  else if (!line.text[0] && current && found.what >= Found::timeout)
    line = line_of(last_counter);  // it was in the runtime, on behalf of this access
  const char* in = !line.text[0] ? "" : waits ? ", at " : ", in ";
  switch (found.what) {
    case Found::fault:
      if (found.signal == SIGSEGV || found.signal == SIGBUS) set_error(cudaErrorIllegalAddress);
      if (found.signal == SIGSEGV || found.signal == SIGBUS)
        set_failure("%s: address %p%s%s", fault_name(found.signal), found.address, in, line.text);
      else
        set_failure("%s%s%s", fault_name(found.signal), in, line.text);
      break;
    case Found::overflow:
      set_failure("overflows its stack of 512 KiB (endless recursion, or large local arrays)%s%s", in,
                  line.text);
      break;
    case Found::timeout:
      set_error(cudaErrorLaunchTimeout);
      set_failure("has not ended after %g second%s (EMULATOR_TIMEOUT)%s%s%s", limit, limit == 1 ? "" : "s",
                  in, line.text, waiting_threads().c_str());
      break;
    case Found::interrupt:
      set_failure("was interrupted%s%s", in, line.text);
      break;
    case Found::nothing:
      break;
  }
}

// The stack on which handlers run: the kernel's own may be full.
char* handler_stack() {
  static char* stack = static_cast<char*>(std::malloc(64 << 10));
  return stack;
}
stack_t stack_before;

}  // namespace

FaultGuard::FaultGuard() {
  owner = pthread_self();
  failed = false;
  reason[0] = 0;
  found = {};
  stop_wanted = false;
  stop_reason = Found::nothing;
  tries = 0;
  find_own_code();

  stack_t stack = {};
  stack.ss_sp = handler_stack();
  stack.ss_size = 64 << 10;
  sigaltstack(&stack, &stack_before);
  for (int signal : kFaults) handle(signal, on_fault);
  handle(stop_signal(), on_stop);
  struct sigaction interrupt;
  sigaction(SIGINT, nullptr, &interrupt);
  if (interrupt.sa_handler != SIG_DFL && interrupt.sa_handler != SIG_IGN) handle(SIGINT, on_interrupt);

  const char* setting = std::getenv("EMULATOR_TIMEOUT");
  limit = setting ? std::atof(setting) : 60;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = stop_signal();
  event._sigev_un._tid = pid_t(syscall(SYS_gettid));
  has_timer = timer_create(CLOCK_MONOTONIC, &event, &timer) == 0;
  if (limit > 0) arm_timer(long(limit), long((limit - double(long(limit))) * 1e9));
}

FaultGuard::~FaultGuard() {
  if (has_timer) timer_delete(timer);
  has_timer = false;
  for (int signal : kFaults) restore(signal, on_fault);
  restore(stop_signal(), on_stop);
  restore(SIGINT, on_interrupt);
  if (stack_before.ss_flags & SS_DISABLE) stack_before.ss_size = MINSIGSTKSZ;
  sigaltstack(&stack_before, nullptr);
}

const char* failure() {
  if (!failed) return nullptr;
  put_found_in_words();
  return reason;
}

void set_error(cudaError_t error) {
  if (state && state->error == cudaSuccess) state->error = error;
}

void set_failure(const char* what, ...) {
  failed = true;
  set_error(cudaErrorLaunchFailure);
  if (reason[0]) return;
  // A program's report says itself who it was.
  const std::string place = collect_until_exit ? "" : std::string(describe(current).text) + " ";
  const int length = std::snprintf(reason, sizeof(reason), "%s", place.c_str());
  va_list arguments;
  va_start(arguments, what);
  std::vsnprintf(reason + length, sizeof(reason) - std::size_t(length), what, arguments);
  va_end(arguments);
}

void abandon(const char* what, ...) {
  in_kernel = false;
  char text[4096];
  va_list arguments;
  va_start(arguments, what);
  std::vsnprintf(text, sizeof(text), what, arguments);
  va_end(arguments);
  if (!Fiber::running()) throw std::runtime_error(text);
  set_failure("%s", text);
  Fiber::leave();
}

void stop_here() {
  in_kernel = false;
  if (failed) return;
  if (!found.what) found = {stop_reason, 0, nullptr, {}};
  failed = true;
  if (Fiber::running()) Fiber::leave();
}

}  // namespace emulator

// What `assert` calls. This one is found first by the code of this extension only.
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
