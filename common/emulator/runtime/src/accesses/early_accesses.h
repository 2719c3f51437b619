// Accesses of the host to `__managed__` variables while work waits. Only when the work runs, and uses the
// variable, too, they turn out to be mistakes.
#pragma once

#include "../memory/allocation.h"
#include "../report/report.h"

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
bool has_early_accesses();
// Lives while work runs. Afterwards the early accesses are forgotten.
class WorkUnderWay {
 public:
  explicit WorkUnderWay(const void* work);
  ~WorkUnderWay();
  WorkUnderWay(const WorkUnderWay&) = delete;

 private:
  const void* const work_;
  const void* const outer_;
};
// The work under way uses a variable: reports what the host did with it too early.
void report_early_accesses(const Allocation& variable, bool is_write);

}  // namespace emulator
EMULATOR_END
