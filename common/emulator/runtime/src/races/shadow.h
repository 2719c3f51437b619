// Shadow memory: for each word of memory its last accesses, for each byte whether it is initialised.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../memory/access.h"
#include "../ordering/happens_before.h"
#include "races.h"

EMULATOR_BEGIN
namespace emulator {

// Of four bytes: up to three accesses that a later one may collide with.
// As in FastTrack (Flanagan and Freund, 2009) an access takes the place of
// those that it comes after; of many reads the first and the latest stay.
struct ShadowWord {
  Epoch epochs[3];
  Site sites[3];
  std::uint16_t bits;  // four for each access: which bytes; then one for each: whether it writes

  unsigned bytes(int i) const { return bits >> 4 * i & 15u; }
  bool writes(int i) const { return bits >> (12 + i) & 1; }
  bool any_writes() const { return bits >> 12; }
  void put(int i, Epoch epoch, Site site, unsigned bytes, bool writes) {
    drop(i);
    epochs[i] = epoch;
    sites[i] = site;
    bits = std::uint16_t(bits | bytes << 4 * i | unsigned(writes) << (12 + i));
  }
  void drop(int i) {
    epochs[i] = {};
    bits = std::uint16_t(bits & ~(15u << 4 * i | 1u << (12 + i)));
  }
};
static_assert(sizeof(ShadowWord) == 32);  // eight times the memory that it describes

constexpr std::uint64_t byte_bits(std::size_t first, std::size_t count) {
  return (count >= 64 ? ~std::uint64_t(0) : (std::uint64_t(1) << count) - 1) << first % 64;
}

class Shadow {
 public:
  static constexpr std::size_t kWords = 128;  // in a page: half a kilobyte of memory
  static constexpr std::size_t kPageBytes = 4 * kWords;
  enum Writers { kernels, block, others };  // others write it unseen
  Shadow(const std::byte* begin, std::size_t size, Writers writers);
  ~Shadow();
  Shadow(const Shadow&) = delete;

  void check(const Access& access);
  // The same for a plain read of an aligned number of at least 4 bytes, if it can neither collide nor be
  // uninitialised. False: it must be checked.
  template <std::size_t size>
  bool add_harmless_read(const std::byte* address, Site site);
  bool has_writes(const void* begin, std::size_t size) const;  // of the running launch
  void mark(const void* begin, std::size_t size, bool is_uninitialised);
  bool is_untouched() const;                                  // all of the memory is uninitialised
  void forget();                                              // the accesses of the previous launch or block
  void set_peers(bool has_peers) { has_peers_ = has_peers; }  // other blocks access it, too
  // Calls `take(first, count)` for each run of uninitialised bytes of a range, by bytes from its begin.
  template <typename Take>
  void each_uninitialised(const void* begin, std::size_t size, Take take) const;

 private:
  ShadowWord* page_of(std::size_t word) {
    ShadowWord* page = pages_[word / kWords];
    return page ? page : new_page(word / kWords);
  }
  ShadowWord* new_page(std::size_t number);                           // ends the launch if no memory is left
  ShadowWord* take_page(std::size_t number);                          // null if no memory is left
  bool may_be_uninitialised(std::size_t at, std::size_t size) const;  // any of these bytes
  void check_initialised(const Access& access);
  void check_order(const Access& access);
  // An access of the same block, before its last barrier, that can collide with no later one.
  bool is_past(Epoch earlier) const {
    return writers_ == block && !has_peers_ && earlier.time() < thread_clock.barrier;
  }
  void check_word(std::size_t word, const Access& access, Site site, unsigned bytes);
  // A read that a later one of these bytes makes superfluous, or none.
  bool is_superseded(const ShadowWord& shadow, int i, unsigned bytes) const {
    const Epoch earlier = shadow.epochs[i];
    return !earlier || is_past(earlier) || ((shadow.bytes(i) & ~bytes) == 0 && is_after(earlier));
  }
  void add_read(ShadowWord& shadow, Site site, unsigned bytes);
  void compare(ShadowWord& shadow, const Access& access, Site site, const std::byte* word, unsigned bytes);

  const std::byte* begin_;  // of a word
  std::size_t size_;
  Writers writers_;  // a block's own memory is uninitialised when the block begins
  bool has_peers_ = false;
  std::vector<ShadowWord*> pages_;            // null: not accessed
  std::vector<std::uint32_t> used_pages_;     // pages
  std::vector<std::uint64_t> uninitialised_;  // a bit for each byte; empty: none is
};

// Of the running launch: whether an access that passes all checks in any case may skip them. Not if some
// checks are off, or if the accesses are counted, too.
extern bool may_skip_checks;

[[gnu::always_inline]] inline bool Shadow::may_be_uninitialised(std::size_t at, std::size_t size) const {
  if (uninitialised_.empty()) return false;
  return at % 64 + size > 64 || uninitialised_[at / 64] & byte_bits(at, size);
}

// A read of a word that has only been read before.
inline void Shadow::add_read(ShadowWord& shadow, Site site, unsigned bytes) {
  for (int i = 0; i < 3; i++)
    if (shadow.epochs[i] == thread_clock.epoch && shadow.bytes(i) == bytes) {  // it reads the word again
      shadow.sites[i] = site;
      return;
    }
  const int place = is_superseded(shadow, 0, bytes) ? 0 : is_superseded(shadow, 1, bytes) ? 1 : 2;
  for (int i = place + 1; i < 3; i++)
    if (shadow.epochs[i] && is_superseded(shadow, i, bytes)) shadow.drop(i);
  shadow.put(place, thread_clock.epoch, site, bytes, false);
}

template <std::size_t size>
[[gnu::always_inline]] inline bool Shadow::add_harmless_read(const std::byte* address, Site site) {
  const auto at = std::size_t(address - begin_);
  ShadowWord* page = pages_[at / kPageBytes];
  if (!page || may_be_uninitialised(at, size)) return false;
  for (std::size_t i = 0; i < size / 4; i++) {
    ShadowWord& word = page[at / 4 % kWords + i];
    if (word.any_writes()) return false;
    add_read(word, site, 15);
  }
  return true;
}

// Memory that others have written no longer contains the pattern.
bool has_pattern(const std::byte* address, std::size_t size);

template <typename Take>
void Shadow::each_uninitialised(const void* begin, std::size_t size, Take take) const {
  if (uninitialised_.empty()) return;
  const auto start = std::size_t(static_cast<const std::byte*>(begin) - begin_);
  const auto is_uninitialised = [&](std::size_t at) {
    return uninitialised_[(start + at) / 64] >> (start + at) % 64 & 1 &&
           (writers_ != others || has_pattern(begin_ + start + at, 1));
  };
  for (std::size_t at = 0, first; at < size; at++) {
    if ((start + at) % 64 == 0 && !uninitialised_[(start + at) / 64]) {
      at += 63;
      continue;
    }
    for (first = at; at < size && is_uninitialised(at);) at++;
    if (at > first) take(first, at - first);
  }
}

struct SharedShadow {
  Shadow fixed, dynamic;
  explicit SharedShadow(const Arena& arena);
};

}  // namespace emulator
EMULATOR_END
