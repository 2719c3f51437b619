#include "shadow.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <new>

#include "../memory/bindings.h"
#include "../memory/shared_memory.h"
#include "../ordering/release_acquire.h"
#include "../report/report.h"
#include "../state/events.h"
#include "initialisation.h"
#include "peer_accesses.h"
#include "shadow_events.h"
#include "shadow_pages.h"

namespace emulator {

bool may_skip_checks = false;

namespace {

bool checks_races, checks_initialisation;

Shadow::Writers writers_of(Space space) {
  const bool is_hosts = space == Space::tensor || space == Space::managed || space == Space::pinned;
  return is_hosts ? Shadow::others : Shadow::kernels;
}

Shadow& shadow_of(Allocation& allocation) {
  if (!allocation.shadow)
    allocation.shadow =
        std::make_shared<Shadow>(allocation.begin, allocation.size, writers_of(allocation.space));
  return *allocation.shadow;
}

// Null: nothing is known of the memory.
Shadow* shadow_of(const Access& access) {
  if (access.allocation) return &shadow_of(*access.allocation);
  if (!access.arena) return nullptr;
  SharedShadow& shared = *access.owner->shadow;
  return access.arena == access.owner->arena.bytes ? &shared.fixed : &shared.dynamic;
}

// Whether an access reads one number or pointer of memory that holds such elements.
bool is_scalar(const Access& access) {
  if (access.allocation) return holds_scalars(*access.allocation, access.size);
  const SharedVariable* variable = variable_at(*access.owner, access.arena, access.address);
  return variable && !variable->is_dynamic && variable->shape.is_scalar &&
         variable->shape.element == access.size;
}

void check_conflict(const Conflict& conflict) {
  if (conflict.earlier == conflict.now)
    record_repetition(conflict);
  else if (must_be_ordered(conflict) && !is_released(conflict.earlier))
    record_conflict(conflict);
}

void forget_launch() {
  forget_races();
  forget_releases();
  while (!shadow_pages().users.empty()) shadow_pages().users.back()->forget();
  shadow_pages().trim();
}

}  // namespace

bool has_pattern(const std::byte* address, std::size_t size) {
  const auto first = reinterpret_cast<std::uintptr_t>(address) / 4 * 4;
  for (auto at = first; at < reinterpret_cast<std::uintptr_t>(address) + size; at += 4)
    if (std::memcmp(reinterpret_cast<const void*>(at), &kUninitialised, 4) != 0) return false;
  return true;
}

Shadow::Shadow(const std::byte* begin, std::size_t size, Writers writers) : writers_(writers) {
  const std::size_t before = reinterpret_cast<std::uintptr_t>(begin) % 4;
  begin_ = begin - before;
  size_ = size + before;
  pages_.resize(size_ / (4 * kWords) + 1);
  if (writers == block) uninitialised_.resize(4 * kWords / 64 * pages_.size());
}

Shadow::~Shadow() { forget(); }

void Shadow::forget() {
  if (used_pages_.empty()) return;
  for (std::uint32_t number : used_pages_) {
    shadow_pages().free.push_back(pages_[number]);
    pages_[number] = nullptr;
  }
  used_pages_.clear();
  std::erase(shadow_pages().users, this);
}

ShadowWord* Shadow::new_page(std::size_t number) {
  ShadowWord* page = take_page(number);
  if (!page) {
    shadow_pages().reserve.reset();
    abandon(
        "accesses so much memory that the machine has none left for the checks, which need about eight "
        "bytes for each byte: use a smaller size, or switch the checks off (EMULATOR_CHECKS=none)");
  }
  if (writers_ == block) std::memset(&uninitialised_[number * kWords / 16], 0xff, kWords / 2);
  return pages_[number] = page;
}

ShadowWord* Shadow::take_page(std::size_t number) {
  ShadowPages& all = shadow_pages();
  try {
    ShadowWord* page = all.take();
    if (used_pages_.empty()) all.users.push_back(this);
    used_pages_.push_back(std::uint32_t(number));
    return page;
  } catch (const std::bad_alloc&) {
    if (used_pages_.empty()) std::erase(all.users, this);
    return nullptr;
  }
}

void Shadow::mark(const void* begin, std::size_t size, bool is_uninitialised) {
  if (uninitialised_.empty() && !is_uninitialised) return;
  if (uninitialised_.empty()) uninitialised_.resize(size_ / 64 + 1);
  auto at = std::size_t(static_cast<const std::byte*>(begin) - begin_);
  for (const std::size_t end = std::min(at + size, size_); at < end;) {
    const std::size_t count = std::min(end - at, 64 - at % 64);
    std::uint64_t& word = uninitialised_[at / 64];
    word = is_uninitialised ? word | byte_bits(at, count) : word & ~byte_bits(at, count);
    at += count;
  }
}

bool Shadow::has_writes(const void* begin, std::size_t size) const {
  const auto first = std::size_t(static_cast<const std::byte*>(begin) - begin_);
  for (std::size_t at = first; at < first + size; at++) {
    const ShadowWord* page = pages_[at / 4 / kWords];
    if (!page) continue;
    const ShadowWord& word = page[at / 4 % kWords];
    for (int i = 0; i < 3; i++)
      if (word.writes(i) && word.bytes(i) >> at % 4 & 1) return true;
  }
  return false;
}

bool Shadow::is_untouched() const {
  if (uninitialised_.empty()) return false;
  const std::size_t whole = size_ / 64, rest = size_ % 64;
  for (std::size_t i = 0; i < whole; i++)
    if (~uninitialised_[i]) return false;
  return (!rest || !(~uninitialised_[whole] & byte_bits(0, rest))) && has_pattern(begin_, size_);
}

void Shadow::check(const Access& access) {
  const auto at = std::size_t(access.address - begin_);
  if (at + access.size > size_) return;  // possible where the check of bounds is off
  if (writers_ == block)
    for (std::size_t page = at / kPageBytes; page <= (at + access.size - 1) / kPageBytes; page++)
      if (!pages_[page]) new_page(page);
  if (may_be_uninitialised(at, access.size)) {
    const bool reads = !access.is_write || access.kind == AccessKind::atomic;
    if (reads && checks_initialisation) check_initialised(access);
    if (access.is_write) mark(access.address, access.size, false);
  }
  if (checks_races && thread_clock.epoch) check_order(access);
}

// Copies of structures also read the padding between members. So only an uninitialised unit counts that is
// large enough to contain a part of a member, unless the memory is known to have no padding.
void Shadow::check_initialised(const Access& access) {
  const std::size_t unit = access.size <= 8 ? access.size : access.size == 16 ? 8 : 16;
  auto at = std::size_t(access.address - begin_);
  const std::size_t end = at + access.size;
  if (access.size > 16) at = (at + unit - 1) / unit * unit;
  for (; at + unit <= end; at += unit) {
    std::uint64_t missing = uninitialised_[at / 64] >> at % 64;
    if (at % 64 + unit > 64) missing |= uninitialised_[at / 64 + 1] << (64 - at % 64);
    missing &= byte_bits(0, unit);
    const bool is_whole = missing == byte_bits(0, unit);
    if (!missing || (!is_whole && (writers_ == others || !is_scalar(access)))) continue;
    if (writers_ == others && !has_pattern(begin_ + at, unit)) continue;
    return record_uninitialised_read(access, begin_ + at, unsigned(std::popcount(missing)));
  }
}

inline void Shadow::check_word(std::size_t word, const Access& access, Site site, unsigned bytes) {
  ShadowWord& shadow = page_of(word)[word % kWords];
  if (!shadow.bits)
    shadow.put(0, thread_clock.epoch, site, bytes, access.is_write);
  else if (!access.is_write && !shadow.any_writes() && access.kind == AccessKind::plain)
    add_read(shadow, site, bytes);
  else
    compare(shadow, access, site, begin_ + 4 * word, bytes);
}

void Shadow::check_order(const Access& access) {
  const Site site = site_of(access);
  auto at = std::size_t(access.address - begin_);
  if (access.size == 4 && at % 4 == 0) {  // most accesses: g++ makes code for these four bytes
    check_word(at / 4, access, site, 15);
  } else {
    for (const std::size_t end = at + access.size; at < end;) {
      const std::size_t first = at % 4, count = std::min(4 - first, end - at);
      check_word(at / 4, access, site, ((1u << count) - 1) << first);
      at += count;
    }
  }
  if (access.kind != AccessKind::plain) record_synchronising(access);
}

// An access to a word that has been accessed before.
void Shadow::compare(ShadowWord& shadow, const Access& access, Site site, const std::byte* word,
                     unsigned bytes) {
  const bool writes = access.is_write;
  int place = -1;
  for (int i = 0; i < 3; i++) {
    const Epoch earlier = shadow.epochs[i];
    if (!earlier) {
      if (place < 0) place = i;
      continue;
    }
    bool is_known = is_after(earlier);
    const bool collides = shadow.bytes(i) & bytes && (writes || shadow.writes(i));
    if ((collides && !is_known) || (access.kind != AccessKind::plain && earlier == thread_clock.epoch)) {
      check_conflict({&access, site, thread_clock.epoch, word, shadow.bytes(i) & bytes, earlier,
                      shadow.sites[i], shadow.writes(i)});
      is_known = true;
    }
    const bool is_covered = (shadow.bytes(i) & ~bytes) == 0 && (writes || !shadow.writes(i));
    if (!(is_known && is_covered) && !is_past(earlier)) continue;
    shadow.drop(i);
    if (place < 0) place = i;
  }
  for (int i = 2; place < 0 && i >= 0; i--)
    if (!shadow.writes(i)) place = i;
  if (place >= 0 || writes) shadow.put(std::max(place, 0), thread_clock.epoch, site, bytes, writes);
}

SharedShadow::SharedShadow(const Arena& arena)
    : fixed(arena.bytes, kArena, Shadow::block), dynamic(arena.dynamic, kArena, Shadow::block) {}

void check_shadow(const Access& access) {
  if (has_suspects) settle_suspects();
  if (checks_races) epoch_now();
  if (Shadow* shadow = shadow_of(access)) shadow->check(access);
}

void shadow_launch_begins(bool needs_every_access) {
  checks_races = is_on(Check::races);
  checks_initialisation = is_on(Check::initialisation);
  const bool checks_all = checks_races && checks_initialisation && is_on(Check::memory);
  may_skip_checks = checks_all && !needs_every_access;
  forget_launch();
}

void shadow_launch_ends() {
  settle_suspects();
  settle_races();
  forget_launch();
}

void on_block_begins(Block& block) {
  if (!running.observes_accesses) return;
  begin_clock(block);
  if (!block.shadow) block.shadow = std::make_shared<SharedShadow>(block.arena);
  const bool has_peers = running.launch->schedule.cluster_size() > 1;
  for (Shadow* part : {&block.shadow->fixed, &block.shadow->dynamic}) {
    part->forget();
    part->set_peers(has_peers);
  }
  begin_peer_accesses(block, has_peers);
}

void on_thread_ends(Thread& thread) {
  if (!running.observes_accesses) return;
  if (has_suspects) settle_suspects();
  if (thread.block->peers) settle_peer_accesses(thread);
}

void mark_initialised(Allocation& allocation, const void* begin, std::size_t size) {
  if (allocation.shadow) allocation.shadow->mark(begin, size, false);
}
void mark_uninitialised(Allocation& allocation, const void* begin, std::size_t size) {
  shadow_of(allocation).mark(begin, size, true);
}
void copy_initialisation(Allocation& to, const void* to_begin, const Allocation& from, const void* from_begin,
                         std::size_t size) {
  mark_initialised(to, to_begin, size);
  if (from.shadow)
    from.shadow->each_uninitialised(from_begin, size, [&](std::size_t first, std::size_t count) {
      mark_uninitialised(to, static_cast<const std::byte*>(to_begin) + first, count);
    });
}
UninitialisedBytes uninitialised_in(const Allocation& allocation, const void* begin, std::size_t size) {
  UninitialisedBytes found{0, 0, 0};
  if (allocation.shadow)
    allocation.shadow->each_uninitialised(begin, size, [&](std::size_t first, std::size_t count) {
      if (!found.bytes) found.first = first;
      found.bytes += count;
      found.longest = std::max(found.longest, count);
    });
  return found;
}
bool is_written_in_launch(const Allocation& allocation, const void* begin, std::size_t size) {
  return allocation.shadow && allocation.shadow->has_writes(begin, size);
}
bool is_untouched(const Allocation& allocation) {
  return allocation.shadow && allocation.shadow->is_untouched();
}

}  // namespace emulator
