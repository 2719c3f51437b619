// Reports host code that accesses memory it must not access, or crashes.
#include <execinfo.h>
#include <pthread.h>
#include <signal.h>
#include <sys/resource.h>
#include <ucontext.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "../src/accesses/early_accesses.h"
#include "../src/api/streams/streams.h"
#include "../src/memory/access.h"
#include "../src/memory/allocation.h"
#include "../src/memory/pages.h"
#include "../src/report/call.h"
#include "../src/state/module_image.h"
#include "program.h"

namespace emulator {
namespace {

constexpr std::size_t kAbout = 1 << 20;  // bytes from CUDA memory within which an access is attributed to it
constexpr std::size_t kHandlerStack = 1 << 20;

std::string in(const std::string& line) { return line.empty() ? "" : ", in " + line; }

const char* verb(const void* context) {
#if defined(__x86_64__)
  return static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_ERR] & 2 ? "writes" : "reads";
#else
  return static_cast<void>(context), "accesses";
#endif
}

// The allocation that contains an address or is next to it.
const Allocation* near(const std::byte* address) {
  if (const Allocation* allocation = find_allocation(address)) return allocation;
  for (const Allocation* allocation : all_allocations())
    if (allocation->space != Space::variable && address + kAbout >= allocation->begin &&
        address < allocation->end() + kAbout)
      return allocation;
  return nullptr;
}

// Work that the host has not waited for uses this memory. Adds a finding; the host continues with the old
// data.
void report_early_access(const PageProtection& protection, const Allocation& allocation,
                         const void* context) {
  Position since{};
  const std::string& work = *name_of_work(protection.for_work, &since);
  const std::string name = allocation.name.empty() ? "memory" : allocation.name;
  if (!is_on(Check::streams)) return;
  const Cause cause{Check::streams, "too early", nullptr, allocation.begin, since.line(), since.column()};
  const std::string does = verb(context);
  Finding finding{
      false, "the host " + does + " " + name + " while " + work + " may still be using it",
      line_in_program(context),
      "started in " + line_at(since) + ", and nothing has waited for it: call cudaDeviceSynchronize() first"};
  if (allocation.is_static)
    remember_early_access({protection.for_work, &allocation, does == "writes", cause, std::move(finding)});
  else if (is_new(cause))
    add(cause, std::move(finding));
}

// A kernel received this memory as writable, but did not write it.
void report_untouched_read(const Allocation& allocation, const void* context) {
  const Cause cause{Check::initialisation, "host", nullptr, allocation.begin};
  if (std::string(verb(context)) == "writes" || !is_on(Check::initialisation) || !is_new(cause)) return;
  const std::string name = allocation.name.empty() ? "memory" : allocation.name;
  add(cause, {false, "the host reads " + name + ", but no kernel has written any of it",
              line_in_program(context), describe(allocation)});
}

// Reports a host access to CUDA memory; does nothing if the address is far from any.
void report_access_out_of_reach(const std::byte* address, const void* context) {
  const Allocation* allocation = near(address);
  if (!allocation || !is_on(Check::memory)) return;
  const std::string name = allocation->name.empty() ? "memory" : allocation->name;
  std::string what = "the host " + std::string(verb(context)) + " ";
  const char* problem = "host access";
  const bool in_library = !is_own_code(pc_of(context));
  if (in_library && address < allocation->begin && address + 64 >= allocation->begin)
    what = "the host passes " + name + " to free or delete: use cudaFree or cudaFreeHost";
  else if (allocation->freed)
    what += name + " after it was freed in " + line_at(allocation->freed_where);
  else if (address < allocation->begin)
    what += "before the beginning of " + name;
  else if (address >= allocation->end())
    what += "past the end of " + name;
  else
    what += name + ", which is device memory: copy it with cudaMemcpy";
  const Cause cause{Check::memory, problem, nullptr, allocation};
  if (is_new(cause)) add(cause, {false, what, line_in_program(context), describe(*allocation)});
}

// Whether the host's stack ends where the access was.
bool is_overflow(const void* address, const void* context) {
#if defined(__x86_64__)
  const auto stack = static_cast<const ucontext_t*>(context)->uc_mcontext.gregs[REG_RSP];
  const auto distance = reinterpret_cast<greg_t>(address) - stack;
  return distance > -(1 << 16) && distance < (1 << 16);
#else
  return static_cast<void>(address), static_cast<void>(context), false;
#endif
}

std::string crash_of(int signal, const siginfo_t* info, const void* context) {
  if (signal == SIGFPE) return "it divides an integer by zero";
  if (signal == SIGILL) return "it executes an illegal instruction";
  if (is_overflow(info->si_addr, context)) return "it overflows its stack";
  char address[32];
  std::snprintf(address, sizeof(address), "0x%zx", reinterpret_cast<std::size_t>(info->si_addr));
  const bool is_null = reinterpret_cast<std::uintptr_t>(info->si_addr) < 65536;
  if (const Call* call = Call::under_way())
    return std::string(call->name) + " is given host memory that does not exist or is too short: address " +
           address;
  return std::string("it ") + verb(context) +
         (is_null ? " through a null pointer" : " memory that does not belong to it") + ": address " +
         address;
}

// The process ends as it would without the emulator.
void as_usual(int signal) {
  struct sigaction action = {};
  action.sa_handler = SIG_DFL;
  sigaction(signal, &action, nullptr);
}

void on_host_fault(int signal, siginfo_t* info, void* context) {
  const auto* address = static_cast<const std::byte*>(info->si_addr);
  if (signal == SIGSEGV && info->si_code > 0) {
    const PageProtection* protection = protection_at(address);
    const Allocation* allocation = near(address);
    if (protection && allocation) {
      if (protection->is_untouched)
        report_untouched_read(*allocation, context);
      else
        report_early_access(*protection, *allocation, context);
    }
    if (lift_protection_at(address)) return;  // and try again
    report_access_out_of_reach(address, context);
  }
  alarm(10);  // the report needs memory, but the heap may be corrupted
  std::string crash;
  if (!has_errors() || signal != SIGSEGV || !near(address))
    crash = "  error: the host code crashes, not a kernel: " + crash_of(signal, info, context) +
            in(line_in_program(context)) + "\n";
  std::fflush(stdout);
  end_with(crash);
  as_usual(signal);
}

void on_abort(int signal, siginfo_t*, void* context) {
  alarm(10);
  std::fflush(stdout);
  end_with("  error: the host code aborts (a failed assert, an uncaught exception, or a corrupted heap)" +
           in(line_in_program(context)) + "\n");
  as_usual(signal);
}

}  // namespace

std::string line_in_program(const void* context) {
  const Call* call = Call::under_way();
  if (call && call->where.line()) return line_at(call->where);
  void* frames[64];
  const int count = backtrace(frames, 64);
  const char* innermost = static_cast<const char*>(pc_of(context));
  if (is_own_code(innermost)) {
    const SourceLine line = line_of(innermost);
    if (line.text[0]) return line.text;
  }
  for (int i = 0; i < count; i++) {
    if (!is_own_code(frames[i]) || frames[i] == innermost) continue;
    const SourceLine line = line_of(static_cast<const char*>(frames[i]) - 1);
    if (line.text[0]) return line.text;
  }
  return "";
}

void catch_signal(int signal, void (*handler)(int, siginfo_t*, void*)) {
  struct sigaction action = {};
  action.sa_sigaction = handler;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_RESTART;
  sigemptyset(&action.sa_mask);
  sigaction(signal, &action, nullptr);
}

void watch_host() {
  const rlimit none{0, 0};
  setrlimit(RLIMIT_CORE, &none);
  void* frame;
  backtrace(&frame, 1);  // loads its library now, not in a handler
  stack_t stack = {};
  stack.ss_sp = std::malloc(kHandlerStack);
  stack.ss_size = kHandlerStack;
  sigaltstack(&stack, nullptr);
  for (int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL}) catch_signal(signal, on_host_fault);
  catch_signal(SIGABRT, on_abort);
}

}  // namespace emulator
