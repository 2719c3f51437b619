// Jumps of XORWOW: its shift register is a linear map of 160 bits, so a jump multiplies by a power of its
// matrix.
#include <array>
#include <memory>

#include "emulator/random.h"

namespace emulator::curand {
namespace {

using Words = std::array<unsigned, 5>;
using Map = std::array<Words, 160>;  // the images of each bit

constexpr int kSequenceBits = 67, kPowers = kSequenceBits + 64;

Words image_of(const Map& map, const Words& from) {
  Words to{};
  for (int bit = 0; bit < 160; bit++)
    if (from[bit / 32] >> bit % 32 & 1)
      for (int i = 0; i < 5; i++) to[i] ^= map[bit][i];
  return to;
}

Map one_step() {
  Map map;
  for (int bit = 0; bit < 160; bit++) {
    Xorwow random{};
    random.words[bit / 32] = 1u << bit % 32;
    random.next();
    for (int i = 0; i < 5; i++) map[bit][i] = random.words[i];
  }
  return map;
}

// 2^i steps, for each i.
const Map* powers() {
  static const std::unique_ptr<Map[]> all = [] {
    std::unique_ptr<Map[]> made(new Map[kPowers]);
    made[0] = one_step();
    for (int i = 1; i < kPowers; i++)
      for (int bit = 0; bit < 160; bit++) made[i][bit] = image_of(made[i - 1], made[i - 1][bit]);
    return made;
  }();
  return all.get();
}

}  // namespace

void jump(unsigned (&words)[5], unsigned long long sequences, unsigned long long steps) {
  Words now = {words[0], words[1], words[2], words[3], words[4]};
  for (int bit = 0; bit < 64; bit++) {
    if (sequences >> bit & 1) now = image_of(powers()[kSequenceBits + bit], now);
    if (steps >> bit & 1) now = image_of(powers()[bit], now);
  }
  for (int i = 0; i < 5; i++) words[i] = now[i];
}

}  // namespace emulator::curand
