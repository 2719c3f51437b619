// What each word of memory remembers: who touched it last, and whether anybody has written it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "access.h"
#include "order.h"
#include "races.h"

EMULATOR_BEGIN
namespace emulator {

// Of four bytes: up to three accesses that a later one may collide with. As in FastTrack (Flanagan and
// Freund, 2009) an access takes the place of those that it comes after; of many reads the first and the
// latest stay.
struct Cell {
  Stamp stamps[3];
  Site sites[3];
  std::uint16_t bits;  // four for each access: which bytes; then one for each: whether it writes

  unsigned bytes(int i) const { return bits >> 4 * i & 15u; }
  bool writes(int i) const { return bits >> (12 + i) & 1; }
  void put(int i, Stamp stamp, Site site, unsigned bytes, bool writes) {
    drop(i);
    stamps[i] = stamp;
    sites[i] = site;
    bits = std::uint16_t(bits | bytes << 4 * i | unsigned(writes) << (12 + i));
  }
  void drop(int i) {
    stamps[i] = {};
    bits = std::uint16_t(bits & ~(15u << 4 * i | 1u << (12 + i)));
  }
};
static_assert(sizeof(Cell) == 32);  // eight times what it is about

class Shadow {
 public:
  static constexpr std::size_t kCells = 128;  // in a page: half a kilobyte of memory
  enum Writers { kernels, block, others };    // who writes it: others do so unseen
  Shadow(const std::byte* begin, std::size_t size, Writers writers);
  ~Shadow();
  Shadow(const Shadow&) = delete;

  void check(const Access& access);
  void mark(const void* begin, std::size_t size, bool is_fresh);  // fresh: nobody has written it
  void forget();  // who touched it, in the launch or by the block before
  // Calls `take(first, count)` for each run of fresh bytes of a range, by bytes from its begin.
  template <typename Take>
  void each_fresh(const void* begin, std::size_t size, Take take) const;

 private:
  Cell* page_of(std::size_t word) {
    Cell* page = pages_[word / kCells];
    return page ? page : new_page(word / kCells);
  }
  Cell* new_page(std::size_t number);
  void check_written(const Access& access);
  void check_order(const Access& access);
  void meet(Cell& cell, const Access& access, Site site, const std::byte* word, unsigned bytes);

  const std::byte* begin_;  // of a word
  std::size_t size_;
  Writers writers_;                     // a block's own memory nobody has written when the block begins
  std::vector<Cell*> pages_;            // null: not touched
  std::vector<std::uint32_t> touched_;  // pages
  std::vector<std::uint64_t> fresh_;    // a bit for each byte; empty: all was written
};

// What others write no longer holds the pattern.
bool has_pattern(const std::byte* address, std::size_t size);

template <typename Take>
void Shadow::each_fresh(const void* begin, std::size_t size, Take take) const {
  if (fresh_.empty()) return;
  const auto start = std::size_t(static_cast<const std::byte*>(begin) - begin_);
  const auto is_fresh = [&](std::size_t at) {
    return fresh_[(start + at) / 64] >> (start + at) % 64 & 1 &&
           (writers_ != others || has_pattern(begin_ + start + at, 1));
  };
  for (std::size_t at = 0, first; at < size; at++) {
    if ((start + at) % 64 == 0 && !fresh_[(start + at) / 64]) {
      at += 63;
      continue;
    }
    for (first = at; at < size && is_fresh(at);) at++;
    if (at > first) take(first, at - first);
  }
}

struct SharedShadow {
  Shadow fixed, dynamic;
  explicit SharedShadow(const Arena& arena);
};

}  // namespace emulator
EMULATOR_END
