// Random numbers of 32 bits, and the distributions that are made of them, for host and device.
//
// Philox: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (2011).
// XORWOW: Marsaglia: Xorshift RNGs (2003).
// MRG32k3a: L'Ecuyer: Good parameters and implementations for combined multiple recursive random number
// generators (1999).
#pragma once

#include <cmath>
#include <cstdint>

#include "cuda_runtime.h"

EMULATOR_BEGIN
namespace emulator::curand {

// Encrypts a counter of 128 bits with a key: four random words.
inline uint4 philox(uint4 counter, uint2 key) {
  for (int round = 0; round < 10; round++) {
    const std::uint64_t x = std::uint64_t(0xd2511f53u) * counter.x,
                        z = std::uint64_t(0xcd9e8d57u) * counter.z;
    counter = uint4{unsigned(z >> 32) ^ counter.y ^ key.x, unsigned(z), unsigned(x >> 32) ^ counter.w ^ key.y,
                    unsigned(x)};
    key.x += 0x9e3779b9u;
    key.y += 0xbb67ae85u;
  }
  return counter;
}

// The five words of XORWOW's shift register after more steps: 2^67 for each sequence, and `steps`.
void jump(unsigned (&words)[5], unsigned long long sequences, unsigned long long steps);

// The state of MRG32k3a after count * 2^doublings more steps.
void jump(unsigned (&first)[3], unsigned (&second)[3], unsigned long long count, int doublings);

// In (0, 1]: of 32 bits, and of 53 bits.
inline float uniform(unsigned word) { return float(word) * 0x1p-32f + 0x1p-33f; }
inline double uniform_double(unsigned low, unsigned high) {
  return double(low ^ (unsigned long long)(high) << 21) * 0x1p-53 + 0x1p-54;
}
inline double uniform_double(unsigned word) { return word * 0x1p-32 + 0x1p-32; }

// Two independent numbers of the standard normal distribution, by Box and Muller.
inline float2 normal(unsigned radius, unsigned angle) {
  constexpr float kTurn = 0x1p-32f * 6.2831855f;
  const float length = std::sqrt(-2.0f * std::log(uniform(radius))),
              turned = float(angle) * kTurn + kTurn / 2;
  return float2{std::sin(turned) * length, std::cos(turned) * length};
}
inline double2 normal_double(uint4 words) {
  const double length = std::sqrt(-2 * std::log(uniform_double(words.x, words.y)));
  const double turned = uniform_double(words.z, words.w) * 6.2831853071795860;
  return double2{std::sin(turned) * length, std::cos(turned) * length};
}

// A number of the Poisson distribution. The sum of two such numbers has the sum of their means, so large
// means are divided: the product of uniform numbers must not underflow.
template <typename Next>
unsigned poisson(double mean, Next next) {
  unsigned count = 0;
  for (; mean > 0; mean -= 500) {
    const double limit = std::exp(-(mean < 500 ? mean : 500));
    for (double product = uniform_double(next()); product > limit; product *= uniform_double(next())) count++;
  }
  return count;
}

}  // namespace emulator::curand
EMULATOR_END

// Each generator is a type of state. Its members make words, uniform numbers, and pairs of normal numbers.
namespace emulator::curand {

// A generator with 2^64 sequences of 2^64 words for each seed. `used` words of the block at the counter are
// used.
struct Philox {
  uint2 key;
  uint2 block, sequence;  // the counter: low and high words
  unsigned used;
  uint4 words;  // of the block

  static Philox start(unsigned long long seed, unsigned long long sequence) {
    Philox made{{unsigned(seed), unsigned(seed >> 32)}, {0, 0}, {0, 0}, 0, {}};
    made.skip_sequences(sequence);
    return made;
  }
  void skip_sequences(unsigned long long count) {
    const unsigned long long all = (sequence.x | (unsigned long long)(sequence.y) << 32) + count;
    sequence = uint2{unsigned(all), unsigned(all >> 32)};
    encrypt();
  }
  void skip(unsigned long long count) {
    const unsigned long long words_left = used + count % 4;
    used = words_left % 4;
    const unsigned long long before = block.x | (unsigned long long)(block.y) << 32;
    const unsigned long long after = before + count / 4 + words_left / 4;
    block = uint2{unsigned(after), unsigned(after >> 32)};
    if (after < before)
      skip_sequences(1);
    else if (after != before)
      encrypt();
  }
  unsigned next() {
    const unsigned word = used == 0 ? words.x : used == 1 ? words.y : used == 2 ? words.z : words.w;
    skip(1);
    return word;
  }
  uint4 next4() {
    if (used == 0) {
      const uint4 all = words;
      skip(4);
      return all;
    }
    const unsigned x = next(), y = next(), z = next();
    return uint4{x, y, z, next()};
  }

  float uniform() { return curand::uniform(next()); }
  double uniform_double() { return curand::uniform_double(next()); }
  float2 normals() {
    const unsigned radius = next();
    return normal(radius, next());
  }
  double2 normals_double() { return normal_double(next4()); }

 private:
  void encrypt() { words = philox(uint4{block.x, block.y, sequence.x, sequence.y}, key); }
};

// A generator with 2^64 sequences for each seed.
struct Xorwow {
  unsigned words[5], sum;

  static Xorwow start(unsigned long long seed, unsigned long long sequence) {
    const unsigned low = 1099087573u * (unsigned(seed) ^ 0xaad26b49u);
    const unsigned high = 2591861531u * (unsigned(seed >> 32) ^ 0xf7dcefddu);
    Xorwow made{{123456789u + low, 362436069u ^ low, 521288629u + high, 88675123u ^ high, 5783321u + low},
                6615241u + high + low};
    made.skip_sequences(sequence);
    return made;
  }
  void skip_sequences(unsigned long long count) { move(count, 0); }
  void skip(unsigned long long count) {
    move(0, count);
    sum += 362437u * unsigned(count);
  }
  unsigned next() {
    const unsigned first = words[0] ^ words[0] >> 2;
    for (int i = 0; i < 4; i++) words[i] = words[i + 1];
    words[4] = words[4] ^ words[4] << 4 ^ first ^ first << 1;
    sum += 362437u;
    return words[4] + sum;
  }
  uint4 next4() {
    const unsigned x = next(), y = next(), z = next();
    return uint4{x, y, z, next()};
  }

  float uniform() { return curand::uniform(next()); }
  double uniform_double() {
    const unsigned low = next();
    return curand::uniform_double(low, next());
  }
  float2 normals() {
    const unsigned radius = next();
    return normal(radius, next());
  }
  double2 normals_double() { return normal_double(next4()); }

 private:
  void move(unsigned long long sequences, unsigned long long steps) {
    unsigned copy[5] = {words[0], words[1], words[2], words[3], words[4]};
    if (sequences || steps) jump(copy, sequences, steps);
    for (int i = 0; i < 5; i++) words[i] = copy[i];
  }
};

// Two linear recurrences, modulo two primes. The sequences of a seed have 2^76 numbers.
struct Mrg32k3a {
  static constexpr unsigned long long kFirst = 4294967087u, kSecond = 4294944443u;
  unsigned first[3], second[3];

  static Mrg32k3a start(unsigned long long seed, unsigned long long sequence) {
    const unsigned long long low = seed ? unsigned(seed) ^ 0x55555555u : 1;
    const unsigned long long high = seed ? unsigned(seed >> 32) ^ 0xaaaaaaaau : 1;
    Mrg32k3a made;
    for (int i = 0; i < 3; i++) {
      made.first[i] = unsigned((i == 1 ? high : low) % kFirst * 12345 % kFirst);
      made.second[i] = unsigned((i == 1 ? low : high) % kSecond * 12345 % kSecond);
    }
    made.move(sequence, 76);
    return made;
  }
  void skip(unsigned long long count) { move(count, 0); }
  void skip_subsequences(unsigned long long count) { move(count, 76); }
  void skip_sequences(unsigned long long count) { move(count, 127); }
  unsigned next_number() {  // from 1 to kFirst
    const unsigned long long a = (1403580ull * first[1] + 810728ull * (kFirst - first[0])) % kFirst;
    const unsigned long long b = (527612ull * second[2] + 1370589ull * (kSecond - second[0])) % kSecond;
    first[0] = first[1], first[1] = first[2], first[2] = unsigned(a);
    second[0] = second[1], second[1] = second[2], second[2] = unsigned(b);
    return unsigned(a > b ? a - b : a + kFirst - b);
  }
  unsigned next() { return unsigned(next_number() * 1.000000048662); }
  double uniform_double() { return next_number() * 2.3283065498378288e-10; }
  float uniform() { return float(uniform_double()); }
  float2 normals() {
    const float radius = uniform(), angle = uniform() * 6.2831855f;
    const float length = std::sqrt(-2.0f * std::log(radius));
    return float2{std::sin(angle) * length, std::cos(angle) * length};
  }
  double2 normals_double() {
    const double radius = uniform_double(), angle = uniform_double() * 6.2831853071795860;
    const double length = std::sqrt(-2 * std::log(radius));
    return double2{std::sin(angle) * length, std::cos(angle) * length};
  }

 private:
  void move(unsigned long long count, int doublings) {
    unsigned a[3] = {first[0], first[1], first[2]}, b[3] = {second[0], second[1], second[2]};
    if (count) jump(a, b, count, doublings);
    for (int i = 0; i < 3; i++) first[i] = a[i], second[i] = b[i];
  }
};

}  // namespace emulator::curand
