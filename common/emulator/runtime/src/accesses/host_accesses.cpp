#include "host_accesses.h"

#include <algorithm>
#include <string>
#include <vector>

#include "../memory/pages.h"
#include "../report/call.h"
#include "../report/report.h"
#include "../state/events.h"
#include "../state/launch_state.h"

namespace emulator {

bool has_open_page = false, has_concurrent_host = false;

namespace {

constexpr std::size_t kMostAccesses = 1024;  // more of them would show no other mistakes

struct HostAccess {
  const std::byte* begin;
  std::size_t size;
  bool is_write;
  const void* pc;
  const void* work;  // that may run at the same time
};
std::vector<HostAccess>& host_accesses() {
  static auto& all = *new std::vector<HostAccess>;
  return all;
}
const void* running_work = nullptr;

void record(const HostAccess& access) {
  auto& all = host_accesses();
  const bool is_known = std::any_of(all.begin(), all.end(), [&](const HostAccess& other) {
    return other.begin == access.begin && other.pc == access.pc && other.work == access.work;
  });
  if (!is_known && all.size() < kMostAccesses) all.push_back(access);
}

void set_running_work(const void* work) {
  running_work = work;
  const auto& all = host_accesses();
  has_concurrent_host =
      std::any_of(all.begin(), all.end(), [&](const HostAccess& one) { return one.work == work; });
}

}  // namespace

void access_from_host(void* address, std::size_t size, bool is_write, AccessKind kind, const void* pc) {
  if (has_open_page) close_page();
  has_open_page = false;
  if (kind == AccessKind::plain) return;
  const auto* begin = static_cast<const std::byte*>(address);
  const std::vector<const void*> all_work = work_that_uses(begin, is_write);
  if (all_work.empty()) return;
  for (const void* work : all_work) record({begin, size, is_write, pc, work});
  if (is_write) {
    has_open_page = open_page(begin);
    return;
  }
  const Call call("a load", Position{});
  for (const void* work : all_work) finish_work(work);
}

ConcurrentHost::ConcurrentHost(const void* work) : outer_(running_work) { set_running_work(work); }
ConcurrentHost::~ConcurrentHost() {
  std::erase_if(host_accesses(), [](const HostAccess& one) { return one.work == running_work; });
  set_running_work(outer_);
}

void check_against_host(const void* address, std::size_t size, bool is_write, const void* pc) {
  const auto* begin = static_cast<const std::byte*>(address);
  const auto& all = host_accesses();
  const auto collides = [&](const HostAccess& one) {
    return one.work == running_work && one.begin < begin + size && begin < one.begin + one.size &&
           (is_write || one.is_write);
  };
  const auto found = std::find_if(all.begin(), all.end(), collides);
  const Allocation* allocation = find_allocation(address);
  if (found == all.end() || !allocation || !is_on(Check::streams)) return;
  const Cause cause{Check::streams, "concurrent host", pc, allocation};
  if (!is_new(cause)) return;
  const std::string line = line_of(found->pc).text;
  add(cause,
      {false,
       std::string(is_write ? "writes " : "reads ") + element_of(*allocation, address, size) + " of " +
           name_of(*allocation) + " while the host may be " + (found->is_write ? "writing it" : "reading it"),
       "",
       "the host does so" + (line.empty() ? "" : " in " + line) +
           " without waiting for the kernel: then the kernel, too, needs a volatile access or\n"
           "an atomic of the whole system, such as atomicAdd_system"});
}

}  // namespace emulator
