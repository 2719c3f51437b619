#include "undefined_values.h"

#include <bit>
#include <cstring>
#include <string>

namespace emulator {

bool has_store_to_check = false;

namespace {

struct Store {
  Thread* thread;
  Access access;
  std::uint64_t before;
};
Store last_store;

// "has returned": why lanes in a mask never arrive.
std::string fate(std::uint32_t gone, std::uint32_t existing, bool is_one) {
  if (!(gone & existing)) return is_one ? "does not exist" : "do not exist";
  return std::string(is_one ? "has" : "have") +
         (gone & ~existing ? " returned or never existed" : " returned");
}

std::uint64_t value_at(const Access& access) {
  std::uint64_t value = 0;
  std::memcpy(&value, access.address, access.size);
  return value;
}

}  // namespace

std::uint32_t existing_lanes(const Block& block, unsigned warp) {
  const std::size_t left = block.threads.size() - 32 * warp;
  return left >= 32 ? 0xffffffffu : (1u << left) - 1;
}

void add_undefined(Thread& thread, const Stray& stray, const std::string& use) {
  const Cause cause = cause_at("undefined value", stray.where);
  const AboutThread about(&thread);
  if (!is_new(cause)) return;
  const std::uint32_t existing = existing_lanes(*thread.block, thread.warp());
  const bool is_named = stray.mask >> stray.lane & 1;
  std::string what = "lane " + std::to_string(thread.lane()) + " reads the value of lane " +
                     std::to_string(stray.lane) + " with " + name_of(stray.operation) + ", but ";
  what += is_named ? "that lane " + fate(1u << stray.lane, existing, true)
                   : "the mask does not include that lane";
  std::string detail = "this value is undefined" + use + ": the mask is " + in_hex(stray.mask) + ", ";
  detail += is_named ? "and " + lanes_text(stray.gone) + " " +
                           fate(stray.gone, existing, std::has_single_bit(stray.gone))
                     : lanes_text(stray.mask);
  add(cause, {false, what, at(stray.where), detail});
}

bool is_made_of(const Stray& stray, std::uint64_t value, std::size_t size) {
  constexpr std::uint64_t undefined = std::uint64_t(kUninitialised) << 32 | kUninitialised;
  const unsigned others = unsigned(64 - 8 * size);  // bits
  return value << others == undefined << others || value << others == (stray.given + undefined) << others;
}

void watch_store(const Access& access) {
  const Allocation& allocation = *access.allocation;
  if (access.size != 4 && access.size != 8) return;
  if (allocation.freed || access.address + access.size > allocation.end()) return;
  has_store_to_check = true;
  last_store = {running.thread, access, value_at(access)};
}

// An atomic that adds changes its element by the value.
void check_store() {
  has_store_to_check = false;
  const auto& [thread, access, before] = last_store;
  const std::uint64_t value = value_at(access);
  const bool is_used = is_made_of(thread->stray, value, access.size) ||
                       (is_atomic(access.kind) && is_made_of(thread->stray, value - before, access.size));
  if (!is_used) return;
  const std::string line = line_of(access.pc).text;
  add_undefined(*thread, thread->stray,
                ", and it is used for " + element_of(*access.allocation, access.address, access.size) +
                    " of " + name_of(*access.allocation) + (line.empty() ? "" : " in " + line));
}

void forget_store() { has_store_to_check = false; }

}  // namespace emulator
