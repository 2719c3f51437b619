// What the checks found: one finding for each cause, how often it came up, and in which thread first.
#pragma once

#include <cstdint>
#include <string>
#include <tuple>

#include "emulator/state.h"
#include "source_lines.h"

EMULATOR_BEGIN
namespace emulator {

// The checks, by the names that EMULATOR_CHECKS uses to switch them: "all", "none", "-races",
// "memory,launch".
enum class Check : std::uint8_t { memory, initialisation, races, barriers, launch, streams, leaks };
const char* name_of(Check check);
constexpr int kChecks = int(Check::leaks) + 1;
extern bool enabled_checks[kChecks];  // as EMULATOR_CHECKS said when the launch began
inline bool is_on(Check check) { return enabled_checks[int(check)]; }
void read_settings();  // at the start of a launch or a program
bool any_check();      // whether any check that looks at accesses is on

// Two findings are the same if they report the same problem, with the same object, at the same place.
struct Cause {
  Check check;
  const char* problem;                 // "reads past the end"; a literal
  const void* pc;                      // of the access; null if a position is given
  const void* about;                   // the allocation, the barrier's file name...
  std::uint32_t line = 0, column = 0;  // of the position

  bool operator<(const Cause& other) const { return all() < other.all(); }
  std::tuple<Check, const char*, const void*, const void*, std::uint32_t, std::uint32_t> all() const {
    return {check, problem, pc, about, line, column};
  }
};

struct Finding {
  bool is_warning = false;  // shown, but nothing fails
  std::string what;         // one line: "reads past the end of z"
  std::string where;        // "lltm_kernel.cu:23"; empty: from the cause's pc, when it is shown
  std::string detail;       // a line or two about the first instance; may be empty
};

// Counts one more instance for the running thread. True if the cause is new; the caller then calls `add`.
bool is_new(const Cause& cause);
void add(const Cause& cause, Finding finding);
void withdraw(const Cause& cause);  // it was no mistake
void set_detail(const Cause& cause, std::string detail);

bool has_findings();
bool has_errors();
// All findings, worst first, at most one screen. Clears them.
std::string take_report();

// In a plain program, findings are kept until the program ends, and a launch with errors sets a CUDA error.
// Otherwise each launch raises its own findings.
extern bool collect_until_exit;

}  // namespace emulator
EMULATOR_END
