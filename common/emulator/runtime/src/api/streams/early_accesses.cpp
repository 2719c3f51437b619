#include "early_accesses.h"

#include "stream_queue.h"

namespace emulator {
namespace {

std::vector<EarlyAccess>& early_accesses() {
  static auto& all = *new std::vector<EarlyAccess>;  // outlives every static object
  return all;
}

}  // namespace

void remember_early_access(EarlyAccess access) { early_accesses().push_back(std::move(access)); }

void forget_early_accesses(const void* work) {
  std::erase_if(early_accesses(), [&](const EarlyAccess& one) { return one.work == work; });
}

bool has_early_accesses() { return !early_accesses().empty(); }

void report_early_accesses(const Allocation& variable, bool is_write) {
  for (const EarlyAccess& one : early_accesses()) {
    if (one.work != work_under_way() || one.variable != &variable || !(one.is_write || is_write)) continue;
    if (is_new(one.cause)) add(one.cause, one.finding);
  }
}

}  // namespace emulator
