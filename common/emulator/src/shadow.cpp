#include "shadow.h"

#include <algorithm>
#include <cstring>

#include "releases.h"
#include "report.h"

namespace emulator {
namespace {

bool checks_races, checks_initialisation;

// CellPages of cells, given out and taken back in every launch.
struct CellPages {
  static constexpr std::size_t kPage = Shadow::kCells * sizeof(Cell), kSlab = 256 * kPage, kKept = 64;
  std::vector<std::unique_ptr<std::byte[]>> slabs;
  std::vector<Cell*> free;
  std::vector<Shadow*> users;

  Cell* take() {
    if (free.empty()) add_free(slabs.emplace_back(std::make_unique_for_overwrite<std::byte[]>(kSlab))[0]);
    Cell* page = free.back();
    free.pop_back();
    std::memset(static_cast<void*>(page), 0, kPage);
    return page;
  }
  // When all are free: keeps what the next launch is likely to need.
  void trim() {
    if (slabs.size() <= kKept) return;
    slabs.resize(kKept);
    free.clear();
    for (auto& slab : slabs) add_free(slab[0]);
  }

 private:
  void add_free(std::byte& slab) {
    for (std::size_t at = kSlab; at > 0; at -= kPage)
      free.push_back(reinterpret_cast<Cell*>(&slab + at - kPage));
  }
};
CellPages& cell_pages() {
  static auto& all = *new CellPages;
  return all;
}

std::uint64_t byte_bits(std::size_t first, std::size_t count) {
  return (count >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << count) - 1) << first % 64;
}

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

void judge(const Conflict& conflict) {
  if (conflict.earlier == conflict.now)
    note_again(conflict);
  else if (must_be_ordered(conflict) && !is_released(conflict.earlier))
    note_conflict(conflict);
}

void forget_launch() {
  forget_conflicts();
  forget_releases();
  while (!cell_pages().users.empty()) cell_pages().users.back()->forget();
  cell_pages().trim();
}

}  // namespace

bool has_pattern(const std::byte* address, std::size_t size) {
  const auto first = reinterpret_cast<std::uintptr_t>(address) / 4 * 4;
  for (auto at = first; at < reinterpret_cast<std::uintptr_t>(address) + size; at += 4)
    if (std::memcmp(reinterpret_cast<const void*>(at), &kUnwritten, 4) != 0) return false;
  return true;
}

Shadow::Shadow(const std::byte* begin, std::size_t size, Writers writers) : writers_(writers) {
  const std::size_t before = reinterpret_cast<std::uintptr_t>(begin) % 4;
  begin_ = begin - before;
  size_ = size + before;
  pages_.resize(size_ / (4 * kCells) + 1);
  if (writers == block) fresh_.resize(4 * kCells / 64 * pages_.size());
}

Shadow::~Shadow() { forget(); }

void Shadow::forget() {
  if (touched_.empty()) return;
  for (std::uint32_t number : touched_) {
    cell_pages().free.push_back(pages_[number]);
    pages_[number] = nullptr;
  }
  touched_.clear();
  std::erase(cell_pages().users, this);
}

Cell* Shadow::new_page(std::size_t number) {
  if (writers_ == block) std::memset(&fresh_[number * kCells / 16], 0xff, kCells / 2);
  if (touched_.empty()) cell_pages().users.push_back(this);
  touched_.push_back(std::uint32_t(number));
  return pages_[number] = cell_pages().take();
}

void Shadow::mark(const void* begin, std::size_t size, bool is_fresh) {
  if (fresh_.empty() && !is_fresh) return;
  if (fresh_.empty()) fresh_.resize(size_ / 64 + 1);
  auto at = std::size_t(static_cast<const std::byte*>(begin) - begin_);
  for (const std::size_t end = std::min(at + size, size_); at < end;) {
    const std::size_t count = std::min(end - at, 64 - at % 64);
    std::uint64_t& word = fresh_[at / 64];
    word = is_fresh ? word | byte_bits(at, count) : word & ~byte_bits(at, count);
    at += count;
  }
}

void Shadow::check(const Access& access) {
  const auto at = std::size_t(access.address - begin_);
  if (at + access.size > size_) return;  // possible where the check of bounds is off
  if (writers_ == block)
    for (std::size_t word = at / 4; word <= (at + access.size - 1) / 4; word += kCells) page_of(word);
  if (!fresh_.empty()) {
    const bool reads = !access.is_write || access.kind == Kind::atomic;
    if (reads && checks_initialisation) check_written(access);
    if (access.is_write) mark(access.address, access.size, false);
  }
  if (checks_races && running.stamp) check_order(access);
}

// Copies of structures also read what lies between the members: what counts is a unit that nobody wrote, and
// so large that it must hold a part of some member.
void Shadow::check_written(const Access& access) {
  const std::size_t unit = access.size <= 8 ? access.size : access.size == 16 ? 8 : 16;
  auto at = std::size_t(access.address - begin_);
  const std::size_t end = at + access.size;
  if (access.size > 16) at = (at + unit - 1) / unit * unit;
  for (; at + unit <= end; at += unit) {
    std::uint64_t fresh = fresh_[at / 64] >> at % 64;
    if (at % 64 + unit > 64) fresh |= fresh_[at / 64 + 1] << (64 - at % 64);
    if (~fresh & byte_bits(0, unit) || (writers_ == others && !has_pattern(begin_ + at, unit))) continue;
    note_unwritten(access, begin_ + at);
    return;
  }
}

void Shadow::check_order(const Access& access) {
  const Site site = site_of(access);
  auto at = std::size_t(access.address - begin_);
  for (const std::size_t end = at + access.size; at < end;) {
    const std::size_t first = at % 4, count = std::min(4 - first, end - at);
    const unsigned bytes = ((1u << count) - 1) << first;
    Cell& cell = page_of(at / 4)[at / 4 % kCells];
    if (!cell.bits)
      cell.put(0, running.stamp, site, bytes, access.is_write);
    else
      meet(cell, access, site, begin_ + at - first, bytes);
    at += count;
  }
  if (access.kind != Kind::plain) note_synchronising(access);
}

// An access comes to a word that was touched before.
void Shadow::meet(Cell& cell, const Access& access, Site site, const std::byte* word, unsigned bytes) {
  const bool writes = access.is_write;
  int place = -1;
  for (int i = 0; i < 3; i++) {
    const Stamp earlier = cell.stamps[i];
    if (!earlier) {
      if (place < 0) place = i;
      continue;
    }
    bool is_known = is_after(earlier);
    const bool collides = cell.bytes(i) & bytes && (writes || cell.writes(i));
    if ((collides && !is_known) || (access.kind != Kind::plain && earlier == running.stamp)) {
      judge({&access, site, running.stamp, word, cell.bytes(i) & bytes, earlier, cell.sites[i],
             cell.writes(i)});
      is_known = true;
    }
    const bool is_covered = (cell.bytes(i) & ~bytes) == 0 && (writes || !cell.writes(i));
    const bool is_past = writers_ == block && earlier.time() < running.barrier;
    if (!(is_known && is_covered) && !is_past) continue;
    cell.drop(i);
    if (place < 0) place = i;
  }
  for (int i = 2; place < 0 && i >= 0; i--)
    if (!cell.writes(i)) place = i;
  if (place >= 0 || writes) cell.put(std::max(place, 0), running.stamp, site, bytes, writes);
}

SharedShadow::SharedShadow(const Arena& arena)
    : fixed(arena.bytes, kArena, Shadow::block), dynamic(arena.dynamic, kArena, Shadow::block) {}

void check_shadow(const Access& access) {
  if (has_doubts) settle_doubts();
  if (checks_races) stamp_now();
  if (access.allocation) {
    shadow_of(*access.allocation).check(access);
  } else if (access.arena) {
    SharedShadow& shared = *current->block->shadow;
    (access.arena == current->block->arena.bytes ? shared.fixed : shared.dynamic).check(access);
  }
}

void shadow_launch_begins() {
  checks_races = is_on(Check::races);
  checks_initialisation = is_on(Check::initialisation);
  forget_launch();
}

void shadow_launch_ends() {
  settle_doubts();
  forgive_conflicts();
  forget_launch();
}

void shadow_block_begins(Block& block) {
  begin_order(block);
  if (!block.shadow) block.shadow = std::make_shared<SharedShadow>(block.arena);
  block.shadow->fixed.forget();
  block.shadow->dynamic.forget();
}

void shadow_thread_ends(const Thread&) {
  if (has_doubts) settle_doubts();
}

void mark_written(Allocation& allocation, const void* begin, std::size_t size) {
  if (allocation.shadow) allocation.shadow->mark(begin, size, false);
}
void mark_fresh(Allocation& allocation, const void* begin, std::size_t size) {
  shadow_of(allocation).mark(begin, size, true);
}
void copy_marks(Allocation& to, const void* to_begin, const Allocation& from, const void* from_begin,
                std::size_t size) {
  mark_written(to, to_begin, size);
  if (from.shadow)
    from.shadow->each_fresh(from_begin, size, [&](std::size_t first, std::size_t count) {
      mark_fresh(to, static_cast<const std::byte*>(to_begin) + first, count);
    });
}
Unwritten unwritten_in(const Allocation& allocation, const void* begin, std::size_t size) {
  Unwritten found{0, 0};
  if (allocation.shadow)
    allocation.shadow->each_fresh(begin, size, [&](std::size_t first, std::size_t count) {
      if (!found.bytes) found.first = first;
      found.bytes += count;
    });
  return found;
}

}  // namespace emulator
