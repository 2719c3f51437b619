// Sectors and bank conflicts of one request, as the memory
// pipe of a multiprocessor sees it: before any cache.
#include "warp_requests.h"

#include <algorithm>
#include <bit>
#include <iterator>
#include <vector>

namespace emulator {
namespace {

constexpr std::uintptr_t kBanks = 32, kBankWidth = 4;  // of shared memory; bytes

using Addresses = std::vector<std::uintptr_t>;

std::uint64_t distinct_bytes(const Addresses& ascending, std::uintptr_t size) {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < ascending.size(); i++)
    bytes += i + 1 < ascending.size() ? std::min(size, ascending[i + 1] - ascending[i]) : size;
  return bytes;
}

std::uint64_t distinct_sectors(const Addresses& ascending, std::uintptr_t size) {
  std::uint64_t sectors = 0;
  std::uintptr_t next = 0;  // the first that has not been counted
  for (const std::uintptr_t address : ascending) {
    const std::uintptr_t begin = std::max(address / kSector, next), end = (address + size - 1) / kSector + 1;
    if (begin < end) sectors += end - begin, next = end;
  }
  return sectors;
}

// How many wavefronts the banks need. A bank serves one word at a time, to all lanes that access it; an
// atomic operation serves one lane alone.
std::uint64_t answers(Addresses words, bool is_atomic) {
  std::sort(words.begin(), words.end());
  if (!is_atomic) words.erase(std::unique(words.begin(), words.end()), words.end());
  std::uint64_t of_bank[kBanks] = {};
  for (const std::uintptr_t word : words) of_bank[word % kBanks]++;
  return *std::max_element(of_bank, of_bank + kBanks);
}

void add_sectors(const Request& request, Totals& totals) {
  Addresses addresses;
  for (unsigned lane = 0; lane < kLanes; lane++)
    if (request.lanes >> lane & 1) addresses.push_back(request.addresses[lane]);
  std::sort(addresses.begin(), addresses.end());
  totals.sectors += distinct_sectors(addresses, request.size);
  totals.ideal_sectors += (distinct_bytes(addresses, request.size) + kSector - 1) / kSector;
}

// Lanes that access 8 bytes each are served in two halves of the warp, 16 bytes in four quarters.
void add_wavefronts(const Request& request, bool is_atomic, Totals& totals) {
  const unsigned together = unsigned(kLanes * kBankWidth / std::max(kBankWidth, request.size));
  for (unsigned first = 0; first < kLanes; first += together) {
    Addresses words;
    for (unsigned lane = first; lane < first + together; lane++) {
      if (!(request.lanes >> lane & 1)) continue;
      const std::uintptr_t begin = request.addresses[lane];
      for (std::uintptr_t word = begin / kBankWidth; word * kBankWidth < begin + request.size; word++)
        words.push_back(word);
    }
    if (words.empty()) continue;
    const std::uint64_t needed = answers(std::move(words), is_atomic);
    totals.wavefronts += needed;
    totals.conflicts += needed - 1;
  }
}

}  // namespace

const char* name_of(Use use) {
  static constexpr const char* names[] = {"global load", "global store", "global atomic",
                                          "shared load", "shared store", "shared atomic"};
  static_assert(std::size(names) == std::size_t(Use::shared_atomic) + 1);
  return names[int(use)];
}

void Totals::add(const Request& request, Use use) {
  const auto active = unsigned(std::popcount(request.lanes));
  requests++;
  lanes += active;
  bytes += active * request.size;
  if (use < Use::shared_load)
    add_sectors(request, *this);
  else
    add_wavefronts(request, use == Use::shared_atomic, *this);
}

void Totals::operator+=(const Totals& other) {
  requests += other.requests;
  lanes += other.lanes;
  bytes += other.bytes;
  sectors += other.sectors;
  ideal_sectors += other.ideal_sectors;
  wavefronts += other.wavefronts;
  conflicts += other.conflicts;
}

}  // namespace emulator
