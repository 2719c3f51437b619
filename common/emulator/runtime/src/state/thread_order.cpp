// Permutations of any size without a table: a Feistel network
// of the next power of four, walked until it stays inside.
#include "thread_order.h"

#include <bit>
#include <cerrno>
#include <cstdlib>
#include <optional>
#include <random>
#include <stdexcept>

#include "settings.h"

namespace emulator {
namespace {

std::optional<std::uint64_t> seed;
std::uint64_t drawn;  // by `pick`, so far

// The finaliser of splitmix64: every bit of the result depends on every bit of the argument.
std::uint64_t mixed(std::uint64_t bits) {
  bits = (bits ^ bits >> 30) * 0xbf58476d1ce4e5b9u;
  bits = (bits ^ bits >> 27) * 0x94d049bb133111ebu;
  return bits ^ bits >> 31;
}

std::uint64_t feistel(std::uint64_t n, unsigned half_bits, std::uint64_t key) {
  const std::uint64_t mask = (std::uint64_t(1) << half_bits) - 1;
  std::uint64_t left = n >> half_bits, right = n & mask;
  for (std::uint64_t round = 1; round <= 4; round++) {
    const std::uint64_t next = left ^ (mixed(key + (round << 60) + right) & mask);
    left = right;
    right = next;
  }
  return left << half_bits | right;
}

std::uint64_t random_seed() {
  static const std::uint64_t one = std::random_device()() % 1000000;  // short enough to type again
  return one;
}

}  // namespace

void read_seed() {
  const char* setting = setting_of("EMULATOR_SEED");
  drawn = 0;
  seed.reset();
  if (!setting || !*setting) return;
  if (std::string(setting) == "random") {
    seed = random_seed();
    return;
  }
  char* end = nullptr;
  errno = 0;
  const std::uint64_t number = std::strtoull(setting, &end, 10);
  if (*end || errno || *setting < '0' || *setting > '9')
    throw std::runtime_error("EMULATOR_SEED is \"" + std::string(setting) +
                             "\": it must be a whole number or random");
  seed = number;
}

std::string seed_note() {
  return seed ? "order shuffled with EMULATOR_SEED=" + std::to_string(*seed) : std::string();
}

bool has_shuffled_order() { return seed.has_value(); }

std::uint64_t shuffled(std::uint64_t n, std::uint64_t size, std::uint64_t salt) {
  if (!seed || size < 2) return n;
  const unsigned half_bits = (unsigned(std::bit_width(size - 1)) + 1) / 2;
  const std::uint64_t key = mixed(mixed(*seed + 1) + salt);
  do n = feistel(n, half_bits, key);
  while (n >= size);
  return n;
}

std::size_t pick(std::size_t size) {
  return seed && size > 1 ? std::size_t(mixed(mixed(*seed + 1) ^ ++drawn) % size) : 0;
}

}  // namespace emulator
