// Accesses of the host to `__managed__` variables while work waits. Only when the work runs, and uses the
// variable, too, they turn out to be mistakes.
#pragma once

#include "../../memory/allocation.h"
#include "../../report/report.h"

EMULATOR_BEGIN
namespace emulator {

struct EarlyAccess {
  const void* work;  // that waited
  const Allocation* variable;
  bool is_write;
  Cause cause;
  Finding finding;
};
void remember_early_access(EarlyAccess access);
void forget_early_accesses(const void* work);  // when it is done
bool has_early_accesses();
// The running work uses a variable: reports what the host did with it too early.
void report_early_accesses(const Allocation& variable, bool is_write);

}  // namespace emulator
EMULATOR_END
