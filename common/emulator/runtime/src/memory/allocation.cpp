// The table of allocations, by address.
#include "allocation.h"

#include <algorithm>
#include <cstdint>
#include <iterator>
#include <map>

namespace emulator {
namespace {

std::map<const std::byte*, Allocation>& table() {
  static auto& all = *new std::map<const std::byte*, Allocation>;
  return all;
}

const std::byte* first_byte(const void* address) { return static_cast<const std::byte*>(address); }

}  // namespace

LastAccess last_accesses[128];

void forget_last_accesses() { std::fill(std::begin(last_accesses), std::end(last_accesses), LastAccess{}); }

Allocation& new_allocation(const void* begin, std::size_t size, Space space, std::string name,
                           Position where) {
  auto& all = table();
  const std::byte *first = first_byte(begin), *end = first + size;
  auto next = all.lower_bound(first);
  if (next != all.begin() && std::prev(next)->second.end() > first) --next;
  while (next != all.end() && (next->first < end || next->first == first)) next = all.erase(next);
  forget_last_accesses();
  Allocation& made = all[first];
  made.begin = const_cast<std::byte*>(first);
  made.size = size;
  made.space = space;
  made.name = std::move(name);
  made.where = where;
  return made;
}

void forget(Allocation& allocation) {
  forget_last_accesses();
  table().erase(allocation.begin);
}

Allocation* find_allocation(const void* address) {
  auto& all = table();
  auto next = all.upper_bound(first_byte(address));
  if (next == all.begin()) return nullptr;
  Allocation& before = std::prev(next)->second;
  return first_byte(address) < before.end() ? &before : nullptr;
}

Allocation* find_neighbour(const void* address, Space space, std::ptrdiff_t bytes) {
  const std::byte* at = first_byte(address);
  auto next = table().upper_bound(at);
  if (next != table().begin()) {
    Allocation& before = std::prev(next)->second;
    if (before.space == space && at - before.end() < bytes) return &before;
  }
  const bool is_near =
      next != table().end() && next->second.space == space && next->second.begin - at < bytes;
  return is_near ? &next->second : nullptr;
}

std::vector<Allocation*> all_allocations() {
  std::vector<Allocation*> all;
  for (auto& [begin, allocation] : table()) all.push_back(&allocation);
  return all;
}

}  // namespace emulator
