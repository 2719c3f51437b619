// Why a launch failed: its kernel was stopped by a signal, by an assertion, or by the runtime.
#pragma once

#include <atomic>

#include "../report/source_lines.h"
#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

// The record of a signal handler. The message is written later, on the scheduler's stack.
struct Fault {
  enum AccessKind { none, fault, overflow, timeout, interrupt } kind;
  int signal;
  const void* address;
  const void* pcs[kMostCalls];  // where it was, and the calls that led there
};

extern std::atomic<bool> launch_has_failed;
inline bool has_failed() { return launch_has_failed; }  // also for signal handlers
bool has_failed_here();                                 // on the core that asks
void clear_failure();                                   // at the start of a launch
void record_fault(const Fault& fault);  // the launch fails for this reason; for signal handlers

// Why the launch failed, or null if it has not failed. The first reason is kept.
const char* failure();
void set_error(cudaError_t error);  // as a device would return it; the first stays
void set_failure(const char* what, ...) __attribute__((format(printf, 1, 2)));

}  // namespace emulator
EMULATOR_END
