// The order in which blocks and threads run: by number, or shuffled by EMULATOR_SEED, so that a kernel which
// relies on an order fails. "random" draws a seed for the process, and reports show it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

void read_seed();  // with the other settings; the same seed gives every launch the same order
bool has_shuffled_order();
std::string seed_note();  // "order shuffled with EMULATOR_SEED=17"; empty without a seed

// The item that runs as number n of `size`: n itself, or a permutation of 0 to size - 1 that depends on
// `salt`.
std::uint64_t shuffled(std::uint64_t n, std::uint64_t size, std::uint64_t salt);
// Which of `size` items comes next: the first, or a random one.
std::size_t pick(std::size_t size);

}  // namespace emulator
EMULATOR_END
