#include "emulator/async_copy.h"

#include <cstring>
#include <deque>
#include <unordered_map>

#include "../launch/failure.h"
#include "../launch/launch_state.h"
#include "../races/shadow_events.h"
#include "access.h"
#include "async_copies.h"

namespace emulator {
namespace {

constexpr std::uint32_t kMostBytes = 16;

struct AsyncCopy {
  std::byte* to;
  std::uint32_t size;
  std::byte data[kMostBytes];
  const void* pc;  // where it was started
};

struct AsyncCopies {
  std::uint64_t block = 0;  // of the thread: another block may use the same Thread later
  std::vector<AsyncCopy> open;
  std::deque<std::vector<AsyncCopy>> groups;
};

std::unordered_map<const Thread*, AsyncCopies>& all_async_copies() {
  static auto& all = *new std::unordered_map<const Thread*, AsyncCopies>;
  return all;
}

AsyncCopies& own_async_copies() {
  AsyncCopies& own = all_async_copies()[running.thread];
  if (own.block != running.thread->block->number) own = {running.thread->block->number, {}, {}};
  return own;
}

void finish(const AsyncCopy& copy) {
  shadow_copy_arrives(copy.to, copy.size);
  on_access(copy.to, copy.size, true, AccessKind::plain, copy.pc);
  std::memcpy(copy.to, copy.data, copy.size);
}

}  // namespace

void forget_async_copies() { all_async_copies().clear(); }

const void* start_of_async_copy(const std::byte* address) {
  const auto find_in = [=](const std::vector<AsyncCopy>& copies) -> const void* {
    for (const AsyncCopy& copy : copies)
      if (address >= copy.to && address < copy.to + copy.size) return copy.pc;
    return nullptr;
  };
  for (const auto& [thread, own] : all_async_copies()) {
    if (own.block != running.thread->block->number) continue;
    if (const void* pc = find_in(own.open)) return pc;
    for (const auto& group : own.groups)
      if (const void* pc = find_in(group)) return pc;
  }
  return nullptr;
}

__attribute__((noinline)) void start_async_copy(void* to, const void* from, std::uint32_t size,
                                                std::uint32_t source_size) {
  if (!running.thread) abandon("cp.async was executed outside of a kernel");
  const void* pc = static_cast<const char*>(__builtin_return_address(0)) - 1;
  if (source_size > size) abandon("cp.async has a source of %u bytes, but copies %u", source_size, size);
  AsyncCopy copy{static_cast<std::byte*>(to), size, {}, pc};
  if (source_size)
    on_access(const_cast<void*>(from), source_size, false, AccessKind::plain, pc, source_size != size);
  on_access(to, size, true, AccessKind::plain, pc);
  const InRuntime inside;
  if (source_size) std::memcpy(copy.data, from, source_size);
  for (std::uint32_t at = 0; at < size; at += sizeof(kUninitialised))
    std::memcpy(copy.to + at, &kUninitialised, sizeof(kUninitialised));
  shadow_copy_starts(copy.to, size);
  own_async_copies().open.push_back(copy);
}

void commit_async_copies() {
  const InRuntime inside;
  AsyncCopies& own = own_async_copies();
  own.groups.push_back(std::move(own.open));
  own.open.clear();
}

void wait_for_async_copies(std::uint32_t pending) {
  const InRuntime inside;
  AsyncCopies& own = own_async_copies();
  while (own.groups.size() > pending) {
    for (const AsyncCopy& copy : own.groups.front()) finish(copy);
    own.groups.pop_front();
  }
}

}  // namespace emulator
