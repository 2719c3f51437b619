#include "signals.h"

#include <pthread.h>
#include <signal.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <cstdlib>
#include <system_error>
#include <thread>
#include <utility>

#include "../state/launch_state.h"
#include "../state/module_image.h"
#include "../state/settings.h"
#include "cores.h"
#include "failure.h"

namespace emulator {
namespace {

constexpr int kFaults[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL};
constexpr long kRetryAfter = 10'000'000;  // ns until a stop that came at a bad moment is repeated
constexpr int kMostStops = 500;           // after which the launch is stopped at any moment
constexpr std::size_t kSignalStack = 64 << 10;

// State of the running launch. The previous handlers and the previous stack are restored at its end.
struct Handling {
  struct sigaction previous[NSIG];
  stack_t previous_stack;
  timer_t timer;
  bool has_timer = false;
  double limit;  // seconds
  int stops;     // that came at a bad moment
  Fault::AccessKind stop_reason;
};
Handling handling;

// Leaves the kernel from inside a handler, which has its own stack.
[[noreturn]] void leave_kernel(int signal, const Fault& fault) {
  running.in_kernel = false;
  record_fault(fault);
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, signal);
  pthread_sigmask(SIG_UNBLOCK, &set, nullptr);
  Fiber::leave();
}

[[noreturn]] void leave_kernel_in_turn(int signal, const Fault& fault) {
  running.in_kernel = false;
  wait_for_turn();
  leave_kernel(signal, fault);
}

bool runs_blocks() { return running.launch && pthread_equal(pthread_self(), running.os_thread); }

void call(const struct sigaction& action, int signal, siginfo_t* info, void* context) {
  if (action.sa_flags & SA_SIGINFO)
    action.sa_sigaction(signal, info, context);
  else
    action.sa_handler(signal);
}

void on_fault(int signal, siginfo_t* info, void* context) {
  Fiber* fiber = Fiber::running();
  if (runs_blocks() && fiber) {
    const bool is_overflow = signal == SIGSEGV && fiber->guards(info->si_addr);
    Fault fault{is_overflow ? Fault::overflow : Fault::fault, signal, info->si_addr, {}};
    if (is_overflow) {
      fault.pcs[0] = pc_of(context);
      leave_kernel_in_turn(signal, fault);
    }
    if (running.in_kernel) {
      calls_in_kernel(context, fault.pcs);
      leave_kernel_in_turn(signal, fault);
    }
  }
  // Not the kernel's fault: the previous handler decides,
  // or the process ends as it would without the emulator.
  const struct sigaction& previous = handling.previous[signal];
  if (previous.sa_handler == SIG_DFL || previous.sa_handler == SIG_IGN) {
    sigaction(signal, &previous, nullptr);
    if (info->si_code <= 0) raise(signal);
  } else {
    call(previous, signal, info, context);
  }
}

void arm_timer(long seconds, long nanoseconds) {
  const itimerspec when{{0, kRetryAfter}, {seconds, nanoseconds}};
  if (handling.has_timer) timer_settime(handling.timer, 0, &when, nullptr);
}

void on_stop(int signal, siginfo_t*, void* context) {
  if (!runs_blocks()) return;
  if (handling.stop_reason == Fault::none) handling.stop_reason = Fault::timeout;
  running.stop_wanted = true;
  if (!running.in_kernel || !Fiber::running()) return;
  // Outside the program's own code, it may be inside malloc or printf.
  if (!is_own_code(pc_of(context)) && ++handling.stops < kMostStops) return;
  Fault fault{handling.stop_reason, signal, nullptr, {}};
  calls_in_kernel(context, fault.pcs);
  leave_kernel(signal, fault);
}

void on_interrupt(int signal, siginfo_t* info, void* context) {
  // Python's handler records the signal, and raises KeyboardInterrupt later.
  call(handling.previous[SIGINT], signal, info, context);
  handling.stop_reason = Fault::interrupt;
  running.stop_wanted = true;
  arm_timer(0, 1);
}

using Handler = void (*)(int, siginfo_t*, void*);

bool is_handled_by(const struct sigaction& action, Handler handler) {
  return action.sa_flags & SA_SIGINFO && action.sa_sigaction == handler;
}

// During a launch, other code may install a handler over this one and remove it later. So this handler may be
// installed already, and only this handler is removed.
void handle(int signal, Handler handler) {
  struct sigaction action = {}, previous;
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, &previous);
  if (!is_handled_by(previous, handler)) handling.previous[signal] = previous;
}

void restore(int signal, Handler handler) {
  struct sigaction now;
  sigaction(signal, nullptr, &now);
  if (is_handled_by(now, handler)) sigaction(signal, &handling.previous[signal], nullptr);
}

// Handlers run on a stack of their own: the kernel's may be full.
void use_signal_stack(stack_t* previous) {
  static EMULATOR_OF_CORE void* memory = nullptr;
  if (!memory) memory = std::malloc(kSignalStack);
  stack_t stack = {};
  stack.ss_sp = memory;
  stack.ss_size = kSignalStack;
  sigaltstack(&stack, previous);
}

// Of a thread of the emulator's own, which gets no other signals than those that a kernel causes.
void handle_signals_of_core() {
  use_signal_stack(nullptr);
  sigset_t blocked;
  sigfillset(&blocked);
  for (int signal : kFaults) sigdelset(&blocked, signal);
  sigdelset(&blocked, stop_signal());
  pthread_sigmask(SIG_SETMASK, &blocked, nullptr);
}

void install_handlers() {
  for (int signal : kFaults) handle(signal, on_fault);
  handle(stop_signal(), on_stop);
  struct sigaction interrupt;
  sigaction(SIGINT, nullptr, &interrupt);
  if (interrupt.sa_handler != SIG_DFL && interrupt.sa_handler != SIG_IGN) handle(SIGINT, on_interrupt);
}

void start_timer() {
  const char* setting = setting_of("EMULATOR_TIMEOUT");
  handling.limit = setting ? std::atof(setting) : 60;
  sigevent event = {};
  event.sigev_notify = SIGEV_THREAD_ID;
  event.sigev_signo = stop_signal();
  event._sigev_un._tid = pid_t(syscall(SYS_gettid));
  handling.has_timer = timer_create(CLOCK_MONOTONIC, &event, &handling.timer) == 0;
  const double limit = handling.limit;
  if (limit > 0) arm_timer(long(limit), long((limit - double(long(limit))) * 1e9));
}

}  // namespace

SignalGuard::SignalGuard() {
  clear_failure();
  running.stop_wanted = false;
  handling.stop_reason = Fault::none;
  handling.stops = 0;
  find_own_code();
  use_signal_stack(&handling.previous_stack);
  install_handlers();
  start_timer();
}

SignalGuard::~SignalGuard() {
  if (handling.has_timer) timer_delete(handling.timer);
  handling.has_timer = false;
  for (int signal : kFaults) restore(signal, on_fault);
  restore(stop_signal(), on_stop);
  restore(SIGINT, on_interrupt);
  stack_t& stack = handling.previous_stack;
  if (stack.ss_flags & SS_DISABLE) stack.ss_size = MINSIGSTKSZ;
  sigaltstack(&stack, nullptr);
}

int stop_signal() { return SIGRTMIN + 7; }

bool start_core(std::function<void()> work) {
  sigset_t every, before;
  sigfillset(&every);
  pthread_sigmask(SIG_SETMASK, &every, &before);
  bool has_started = true;
  try {
    std::thread([work = std::move(work)] {
      handle_signals_of_core();
      work();
    }).detach();
  } catch (const std::system_error&) {
    has_started = false;
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  return has_started;
}

double launch_time_limit() { return handling.limit; }

void stop_launch() {
  running.in_kernel = false;
  record_fault({handling.stop_reason, 0, nullptr, {}});
  if (Fiber::running()) Fiber::leave();
}

}  // namespace emulator
