#include "early_accesses.h"

#include <utility>
#include <vector>

namespace emulator {
namespace {

std::vector<EarlyAccess>& early_accesses() {
  static auto& all = *new std::vector<EarlyAccess>;  // outlives every static object
  return all;
}

const void* under_way = nullptr;

}  // namespace

void remember_early_access(EarlyAccess access) { early_accesses().push_back(std::move(access)); }

WorkUnderWay::WorkUnderWay(const void* work) : work_(work), outer_(std::exchange(under_way, work)) {}

WorkUnderWay::~WorkUnderWay() {
  std::erase_if(early_accesses(), [this](const EarlyAccess& one) { return one.work == work_; });
  under_way = outer_;
}

bool has_early_accesses() { return !early_accesses().empty(); }

void report_early_accesses(const Allocation& variable, bool is_write) {
  for (const EarlyAccess& one : early_accesses()) {
    if (one.work != under_way || one.variable != &variable || !(one.is_write || is_write)) continue;
    if (is_new(one.cause)) add(one.cause, one.finding);
  }
}

}  // namespace emulator
