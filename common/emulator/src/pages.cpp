#include "pages.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <vector>

#include "report.h"

namespace emulator {
namespace {

constexpr std::size_t kPage = 64 << 10;       // of any machine's pages a multiple
constexpr std::size_t kLeastGuard = 1 << 20;  // bytes; larger memory has a guard of its own size
constexpr std::size_t kMostGuard = 1 << 30;
constexpr std::size_t kReserved = std::size_t(1) << 44;  // bytes of addresses, not of memory

struct Range {
  std::byte* begin;
  std::size_t bytes;
};

struct Pages {
  std::byte *next = nullptr, *end = nullptr;
  std::vector<Range> of_device;
  std::vector<Fence> fences;
  int depth = 0;  // of OnDevice
};
Pages& pages() {
  static auto& all = *new Pages;  // outlives every static object
  return all;
}

std::size_t whole_pages(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

void reserve() {
  for (std::size_t bytes = kReserved; bytes >= kMostGuard; bytes /= 2) {
    void* memory = mmap(nullptr, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (memory == MAP_FAILED) continue;
    pages().next = reinterpret_cast<std::byte*>(whole_pages(reinterpret_cast<std::uintptr_t>(memory)));
    pages().end = static_cast<std::byte*>(memory) + bytes;
    return;
  }
}

// The pages that a range touches.
Range around(const std::byte* begin, std::size_t bytes) {
  static const auto page = std::uintptr_t(sysconf(_SC_PAGESIZE));
  const auto first = reinterpret_cast<std::uintptr_t>(begin) / page * page;
  const auto last = (reinterpret_cast<std::uintptr_t>(begin) + bytes + page - 1) / page * page;
  return {reinterpret_cast<std::byte*>(first), last - first};
}

void raise_fence(const Fence& fence) {
  const Range range = around(fence.begin, fence.bytes);
  // Where two overlap, the stricter counts.
  const bool may_read = std::none_of(pages().fences.begin(), pages().fences.end(), [&](const Fence& other) {
    const Range there = around(other.begin, other.bytes);
    return !other.host_may_read && there.begin < range.begin + range.bytes &&
           range.begin < there.begin + there.bytes;
  });
  mprotect(range.begin, range.bytes, may_read ? PROT_READ : PROT_NONE);
}

void lower_fence(const Fence& fence) {
  const Range range = around(fence.begin, fence.bytes);
  mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE);
}

void open_all() {
  for (const Range& range : pages().of_device) mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE);
  for (const Fence& fence : pages().fences) lower_fence(fence);
}

void close_all() {
  if (!collect_until_exit) return;
  for (const Range& range : pages().of_device) mprotect(range.begin, range.bytes, PROT_NONE);
  for (const Fence& fence : pages().fences) raise_fence(fence);
}

}  // namespace

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

void put_up(const Fence& fence) {
  pages().fences.push_back(fence);
  if (!pages().depth) raise_fence(fence);
}

void take_down(const void* for_work) {
  auto& fences = pages().fences;
  const auto kept = std::stable_partition(fences.begin(), fences.end(),
                                          [&](const Fence& fence) { return fence.for_work != for_work; });
  if (!pages().depth) std::for_each(kept, fences.end(), lower_fence);
  fences.erase(kept, fences.end());
  if (!pages().depth) std::for_each(fences.begin(), fences.end(), raise_fence);
}

const Fence* fence_at(const void* address) {
  for (const Fence& fence : pages().fences)
    if (address >= fence.begin && address < fence.begin + fence.bytes) return &fence;
  return nullptr;
}

bool take_down_at(const void* address) {
  auto& fences = pages().fences;
  const auto holds = [&](const Fence& fence) {
    const Range range = around(fence.begin, fence.bytes);
    return address >= range.begin && address < range.begin + range.bytes;
  };
  std::for_each(fences.begin(), fences.end(), [&](const Fence& fence) {
    if (holds(fence)) lower_fence(fence);
  });
  return std::erase_if(fences, holds) > 0;
}

}  // namespace emulator
