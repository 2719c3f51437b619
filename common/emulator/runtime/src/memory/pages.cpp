#include "pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <fstream>
#include <string>
#include <vector>

#include "../report/report.h"

namespace emulator {
namespace {

constexpr std::size_t kPageBytes = 64 << 10;  // a multiple of any machine's page size
constexpr std::size_t kLeastGuard = 1 << 20;  // bytes; larger memory has a guard of its own size
constexpr std::size_t kMostGuard = 1 << 30;
constexpr std::size_t kLeftForOthers = 256 << 10;        // kilobytes of the machine's memory
constexpr std::size_t kReserved = std::size_t(1) << 44;  // bytes of addresses, not of memory

constexpr std::size_t kMostUnasked = 16 << 20;  // bytes; the system needs 20 us to tell what is available

struct Range {
  std::byte* begin;
  std::size_t bytes;
};

struct Pages {
  std::byte *next = nullptr, *end = nullptr;
  std::vector<Range> of_device;
  std::vector<PageProtection> protections;
  int depth = 0;  // of OnDevice
};
Pages& pages() {
  static auto& all = *new Pages;  // outlives every static object
  return all;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes; }

void reserve() {
  for (std::size_t bytes = kReserved; bytes >= kMostGuard; bytes /= 2) {
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    pages().next = reinterpret_cast<std::byte*>(whole_pages(reinterpret_cast<std::uintptr_t>(memory)));
    pages().end = static_cast<std::byte*>(memory) + bytes;
    return;
  }
}

// The pages that contain a range.
Range around(const std::byte* begin, std::size_t bytes) {
  static const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const auto last = (reinterpret_cast<std::uintptr_t>(begin) + bytes + page - 1) / page * page;
  return {reinterpret_cast<std::byte*>(first), last - first};
}

void apply_protection(const PageProtection& protection) {
  const Range range = around(protection.begin, protection.bytes);
  // If two overlap, the stricter one counts.
  const bool may_read =
      std::none_of(pages().protections.begin(), pages().protections.end(), [&](const PageProtection& other) {
        const Range there = around(other.begin, other.bytes);
        return !other.host_may_read && there.begin < range.begin + range.bytes &&
               range.begin < there.begin + there.bytes;
      });
  mprotect(range.begin, range.bytes, may_read ? PROT_READ : PROT_NONE);
}

void remove_protection(const PageProtection& protection) {
  const Range range = around(protection.begin, protection.bytes);
  mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE);
}

void open_all() {
  for (const Range& range : pages().of_device) mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE);
  for (const PageProtection& protection : pages().protections) remove_protection(protection);
}

void close_all() {
  if (!collect_until_exit) return;
  for (const Range& range : pages().of_device) mprotect(range.begin, range.bytes, PROT_NONE);
  for (const PageProtection& protection : pages().protections) apply_protection(protection);
}

}  // namespace

bool is_available(std::size_t bytes) {
  std::ifstream file("/proc/meminfo");
  std::size_t available = 0;  // kilobytes, 0 if the system does not tell
  for (std::string word; file >> word;)
    if (std::size_t kilobytes; (word == "MemAvailable:" || word == "SwapFree:") && file >> kilobytes)
      available += kilobytes;
  return available == 0 || bytes / 1024 + kLeftForOthers < available;
}

bool is_mapped(const void* address) {
  const Range page = around(static_cast<const std::byte*>(address), 1);
#ifdef __APPLE__
  char resident;
#else
  unsigned char resident;
#endif
  return mincore(page.begin, page.bytes, &resident) == 0;
}

std::byte* take_pages(std::size_t bytes, bool only_device) {
  Pages& all = pages();
  if (!all.next) reserve();
  const std::size_t size = whole_pages(bytes), guard = std::clamp(size, kLeastGuard, kMostGuard);
  if (size > kMostUnasked && !is_available(size)) return nullptr;
  if (bytes > kReserved || size + 2 * guard > std::size_t(all.end - all.next)) return nullptr;
  std::byte* begin = all.next + guard;
  if (mprotect(begin, size, PROT_READ | PROT_WRITE) != 0) return nullptr;
  all.next = begin + size;
  if (only_device) {
    all.of_device.push_back({begin, size});
    if (collect_until_exit && !all.depth) mprotect(begin, size, PROT_NONE);
  }
  return begin;
}

void retire_pages(std::byte* begin, std::size_t bytes) {
  auto& ranges = pages().of_device;
  ranges.erase(std::remove_if(ranges.begin(), ranges.end(), [&](const Range& r) { return r.begin == begin; }),
               ranges.end());
  mmap(begin, whole_pages(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
}

OnDevice::OnDevice() {
  if (pages().depth++ == 0) open_all();
}
OnDevice::~OnDevice() {
  if (--pages().depth == 0) close_all();
}

OnHost::OnHost() : depth_(pages().depth) {
  pages().depth = 0;
  close_all();
}
OnHost::~OnHost() {
  if (depth_) open_all();
  pages().depth = depth_;
}

void protect_from_host(const PageProtection& protection) {
  pages().protections.push_back(protection);
  if (!pages().depth) apply_protection(protection);
}

void lift_protection(const void* for_work) {
  auto& protections = pages().protections;
  const auto kept = std::stable_partition(
      protections.begin(), protections.end(),
      [&](const PageProtection& protection) { return protection.for_work != for_work; });
  if (!pages().depth) std::for_each(kept, protections.end(), remove_protection);
  protections.erase(kept, protections.end());
  if (!pages().depth) std::for_each(protections.begin(), protections.end(), apply_protection);
}

std::vector<const void*> work_that_uses(const void* address, bool or_reads) {
  std::vector<const void*> works;
  for (const PageProtection& one : pages().protections)
    if (address >= one.begin && address < one.begin + one.bytes && !one.is_untouched &&
        (or_reads || !one.host_may_read))
      works.push_back(one.for_work);
  return works;
}

bool open_page(const void* address) {
  if (pages().depth) return false;
  remove_protection(
      {static_cast<std::byte*>(const_cast<void*>(address)), sizeof(std::uint64_t), false, nullptr});
  return true;
}
void close_page() {
  if (pages().depth) return;
  std::for_each(pages().protections.begin(), pages().protections.end(), apply_protection);
}

const PageProtection* protection_at(const void* address) {
  for (const PageProtection& protection : pages().protections)
    if (address >= protection.begin && address < protection.begin + protection.bytes) return &protection;
  return nullptr;
}

bool lift_protection_at(const void* address) {
  auto& protections = pages().protections;
  const auto holds = [&](const PageProtection& protection) {
    const Range range = around(protection.begin, protection.bytes);
    return address >= range.begin && address < range.begin + range.bytes;
  };
  std::for_each(protections.begin(), protections.end(), [&](const PageProtection& protection) {
    if (holds(protection)) remove_protection(protection);
  });
  return std::erase_if(protections, holds) > 0;
}

}  // namespace emulator
