// The expected results of features.cu, computed from CUDA's programming guide and PTX's manual in other ways
// than in the emulator: tables, loops over all threads, exact arithmetic.
#include <cuda_runtime.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>

#include "feature_list.h"

namespace {

template <typename T>
T as(std::uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

template <typename T>
std::vector<T> run(const std::string& name) {
  const Values values = features().at(name)();
  EXPECT_EQ(values.kind, kind_of<T>());
  std::vector<T> result;
  for (std::uint64_t bits : values.bits) result.push_back(as<T>(bits));
  return result;
}

template <typename T>
void expect_each(const std::string& name, std::size_t size, const std::function<T(int)>& expected) {
  const std::vector<T> values = run<T>(name);
  ASSERT_EQ(values.size(), size);
  for (std::size_t i = 0; i < size; i++)
    ASSERT_EQ(bits_of(values[i]), bits_of(expected(int(i)))) << name << " at " << i;
}

template <typename T>
void expect_these(const std::string& name, const std::vector<T>& expected) {
  expect_each<T>(name, expected.size(), [&](int i) { return expected[i]; });
}

// The distance between two numbers in representable numbers.
template <typename T>
double ulp_between(T a, T b) {
  if (a == b || (std::isnan(a) && std::isnan(b))) return 0;
  if (!std::isfinite(a) || !std::isfinite(b)) return INFINITY;
  const T large = std::max(std::fabs(a), std::fabs(b));
  return double(std::fabs(a - b) / (std::nextafter(large, T(INFINITY)) - large));
}

// The nearest number to an exact one, or the nearest on one side.
template <typename T>
T directed(long double exact, char direction) {
  const T nearest = T(exact);
  if (direction == 'z') direction = exact > 0 ? 'd' : 'u';
  if (direction == 'u' && nearest < exact) return std::nextafter(nearest, T(INFINITY));
  if (direction == 'd' && nearest > exact) return std::nextafter(nearest, T(-INFINITY));
  return nearest;
}

}  // namespace

TEST(Functions, DeviceFunctionsAndTables) {
  expect_each<int>("functions", 64, [](int i) { return 6 * i + 1 + 10 * (i % 4 + 1); });
}
TEST(Functions, ConstantMemory) { expect_these<float>("constant_memory", {0, 0.5, 1, 1.5}); }
TEST(Functions, ArgumentsAreEachThreadsOwn) {
  expect_each<int>("arguments", 8, [](int i) { return 100 + i; });
}
TEST(Functions, ThreeDimensions) {
  std::vector<unsigned> expected;
  for (unsigned bz = 0; bz < 4; bz++)
    for (unsigned by = 0; by < 3; by++)
      for (unsigned bx = 0; bx < 2; bx++)
        for (unsigned z = 0; z < 2; z++)
          for (unsigned y = 0; y < 3; y++)
            for (unsigned x = 0; x < 5; x++)
              expected.push_back(x | y << 4 | z << 8 | bx << 12 | by << 16 | bz << 20 | 1u << 24);
  expect_these("indices", expected);
}
TEST(Functions, Launches) {
  expect_each<double>("launches", 16, [](int i) {
    if (i < 4) return i < 3 ? 0.5 * i + 3 : 0;
    return i < 8 ? 0.25 * (i - 4) + 4 : 16.0 - i;
  });
}

TEST(Shared, TwoDimensionsAndScalar) {
  expect_each<int>("shared_static", 64, [](int i) { return i % 8 * 8 + i / 8 + 1000; });
}
TEST(Shared, EachInstanceOfATemplateHasItsOwn) { expect_these<int>("shared_template", {5, 7, 9, 1}); }
TEST(Shared, Dynamic) {
  expect_each<double>("shared_dynamic", 96, [](int i) { return 3.5 * (47 - i % 48); });
}
TEST(Shared, SumOver1024Threads) {
  expect_each<int>("shared_sum", 4, [](int block) {
    int sum = 0;
    for (int i = block * 1024; i < (block + 1) * 1024; i++) sum += i * i % 1000;
    return sum;
  });
}

TEST(Barriers, CountAndOr) {
  expect_each<int>("barrier_votes", 70, [](int) { return 24 << 4 | 8 | 2; });
}
TEST(Barriers, ThreadsThatReturnedCountAsArrived) {
  expect_each<int>("barrier_after_return", 64, [](int t) { return t < 40 ? 17 + 40 : 0; });
}
TEST(Barriers, SyncwarpWithMasks) {
  expect_each<int>("syncwarp", 64, [](int t) { return t % 32 < 16 ? t ^ 8 ^ 1 : -(t ^ 4 ^ 1); });
}

TEST(Warps, ShufflesOfEveryWidth) {
  std::vector<int> expected;
  for (int width = 1; width <= 32; width *= 2) {
    auto each = [&](auto source) {
      for (int lane = 0; lane < 32; lane++) expected.push_back(100 + source(lane, lane / width * width));
    };
    auto modulo = [&](int lane) { return (lane % width + width) % width; };
    each([&](int, int first) { return first + modulo(3); });
    each([&](int lane, int first) { return first + modulo(lane + 5); });
    each([&](int, int first) { return first + modulo(-1); });
    for (int delta : {1, 7})
      each([&](int lane, int first) { return lane - delta < first ? lane : lane - delta; });
    for (int delta : {1, 6})
      each([&](int lane, int first) { return lane + delta >= first + width ? lane : lane + delta; });
    // A lane of an earlier group may be read, one of a later group may not.
    for (int mask : {1, 4, 31})
      each([&](int lane, int first) { return (lane ^ mask) >= first + width ? lane : lane ^ mask; });
  }
  expect_these("shuffles", expected);
}
TEST(Warps, ShufflesOfEveryType) {
  expect_each<unsigned>("shuffle_unsigned", 32,
                        [](int i) { return 32 * 4000000000u + 3 * 496 + 4000000000u + 3 * unsigned(i ^ 3); });
  const auto expect_integers = [](const char* name, std::uint64_t first, std::uint64_t step) {
    const Values values = features().at(name)();
    ASSERT_EQ(values.bits.size(), 32u);
    for (unsigned i = 0; i < 32; i++) EXPECT_EQ(values.bits[i], 33 * first + step * (496 + (i ^ 3)));
  };
  expect_integers("shuffle_long_long", std::uint64_t(-5000000000), 7);
  expect_integers("shuffle_unsigned_long", 1ull << 60, 1);
  expect_each<float>("shuffle_float", 32, [](int i) { return 33 * 0.5f + 0.25f * float(496 + (i ^ 3)); });
  expect_each<double>("shuffle_double", 32, [](int i) { return 33 * -8.0 + 0.125 * (496 + (i ^ 3)); });
}
TEST(Warps, HalvesShuffleAmongThemselves) {
  expect_each<int>("shuffle_mask", 32, [](int i) {
    const int source = i % 2 ? (i + 2) % 32 : (i + 30) % 32;
    return i % 2 ? source * source : -source * source;
  });
}
TEST(Warps, VotesAndMatches) {
  const std::vector<unsigned> values = run<unsigned>("votes");
  ASSERT_EQ(values.size(), 320u);
  for (unsigned t = 0; t < 40; t++) {
    const unsigned lane = t % 32, lanes = t < 32 ? 32 : 8, mask = t < 32 ? 0xffffffffu : 0xffu;
    unsigned thirds = 0, alike = 0;
    for (unsigned other = 0; other < lanes; other++) {
      thirds |= unsigned(other % 3 == 0) << other;
      alike |= unsigned(other / 3 == lane / 3) << other;
    }
    const unsigned first = lane < 4;
    const unsigned expected[] = {thirds, 1, 1, first * 0b1010, first, mask, alike, mask + 1};
    for (int i = 0; i < 8; i++)
      EXPECT_EQ(values[t * 8 + i], expected[i]) << "value " << i << " of thread " << t;
  }
}

TEST(Atomics, IntegersInAnyOrder) {
  std::uint64_t squares = 0;
  for (std::uint64_t t = 0; t < 300; t++) squares ^= t * t;
  const std::vector<std::uint64_t> expected = {1 + 44850,  701,     598, ~0xfffffull,
                                               0x3fffffff, squares, 77,  44850};
  for (const char* name : {"atomic_int", "atomic_unsigned", "atomic_unsigned_long_long"}) {
    const Values values = features().at(name)();
    ASSERT_EQ(values.bits.size(), expected.size());
    const std::uint64_t word = std::string(name) == "atomic_unsigned_long_long" ? ~0ull : 0xffffffffull;
    for (std::size_t i = 0; i < expected.size(); i++)
      EXPECT_EQ(values.bits[i], expected[i] & word) << name << " " << i;
  }
}
TEST(Atomics, WhatTheyReturn) {
  expect_these<unsigned>(
      "atomic_returns",
      {3,          4,          5, 0,          1,          9,          0,          1,  0,         5,  4,
       9,          5,          5, 0xfffffffe, 0xfffffffe, 0,          50,         50, 60,        60, 61,
       0xfffffffb, 0xfffffffb, 3, 0xfffffff9, 0xfffffff9, 0xfffffffa, 0xfffffffb, 1,  0xfffffffb});
}
TEST(Atomics, Floats) {
  expect_these<float>("atomic_float", {7 * 1140});
  expect_these<double>("atomic_double", {7 * 1140});
}

TEST(Memory, LoadsAndStoresWithHints) {
  expect_each<float>("loads", 32, [](int t) { return float(4 * t + t / 4 * 4 + 3); });
}
TEST(Memory, LastBlockReduces) { expect_these<unsigned>("last_block", {210}); }
TEST(Memory, BlocksThatWaitForEachOther) {
  expect_each<unsigned>("grid_barrier", 16,
                        [](int i) { return unsigned(10 * (1 - i / 8) + i % 8 + 1 + 2 + 3); });
}

TEST(Vectors, Values) {
  expect_each<float>("vectors", 32, [](int i) {
    const float values[] = {float(i / 4) + 0.5f, 7, 255, 0.125f};
    return values[i % 4];
  });
}
TEST(Vectors, SizeAndAlignment) {
  const std::vector<std::pair<unsigned, unsigned>> expected = {
      {1, 1},   {2, 2},  {3, 1},   {4, 4},   {4, 4},   {4, 4},   {6, 2},  {8, 8},
      {8, 8},   {12, 4}, {16, 16}, {16, 16}, {24, 8},  {4, 4},   {8, 8},  {12, 4},
      {16, 16}, {8, 8},  {16, 16}, {24, 8},  {16, 16}, {16, 16}, {12, 4}, {12, 4}};
  expect_each<unsigned>("layouts", 24, [&](int i) { return expected[i].first << 8 | expected[i].second; });
}

TEST(Integers, Intrinsics) {
  expect_these<unsigned>(
      "integers",
      {8,          32,         0,          19,         3,          0,          6,          9,
       3,          0x2c480f00, 0x06000000, 0x00080000, 0xcd12ef34, 0x8900abf0, 0xabcdef00, 0xabcdef00,
       0x00f01234, 0xef00f012, 0x8078091a, 0x89abcdef, 0xff9108a7, 0x00811adb, 0,          0x01000000,
       0x2470a28c, 0x4770a28c, 0x77444448, 0x88bbbbbe, 0xc54df011, 0xc54df012, 0x454df011, 0x454df012,
       0xffffffff, 2,          0x00f01234, 0xffffffff, 0xfffffe4b, 0x0000df4b});
}

TEST(Floats, RoundingInEachDirection) {
  const long double a = 1.1f, b = 1e-9f;
  std::vector<float> expected;
  for (long double exact : {a + b, a * a, a / 3, std::sqrt(a), 1 / a, a * a + b})
    for (char direction : {'n', 'z', 'u', 'd'}) expected.push_back(directed<float>(exact, direction));
  expected.push_back(directed<float>(a - b, 'n'));
  expected.push_back(directed<float>(-a - b, 'u'));
  expected.push_back(directed<float>(-a - b, 'd'));
  expected.push_back(float(1 / std::sqrt(a)));
  expect_these("rounding", expected);
}
TEST(Floats, RoundingOfDoubles) {
  const double a = 1.1, above = std::nextafter(a, 2.0);
  // The part that was cut off shows on which side of the rounded value the exact value is.
  auto pair = [](double value, double cut_off, std::vector<double>& expected) {
    expected.push_back(cut_off > 0 ? std::nextafter(value, INFINITY) : value);
    expected.push_back(cut_off < 0 ? std::nextafter(value, -INFINITY) : value);
  };
  std::vector<double> expected = {a, a, above, a};
  const double square = a * a, lost = std::fma(a, a, -square), third = a / 3, root = std::sqrt(a);
  pair(square, lost, expected);
  pair(third, std::fma(-third, 3.0, a), expected);
  pair(root, std::fma(-root, root, a), expected);
  pair(square, lost + 1e-20, expected);
  expected.push_back(9007199254740994);
  expected.push_back(9007199254740992);
  expect_these("rounding_double", expected);
}
TEST(Floats, Conversions) {
  expect_these<long long>("conversions", {2,
                                          4,
                                          -2,
                                          3,
                                          -3,
                                          2147483647,
                                          -2147483648ll,
                                          0,
                                          0,
                                          4294967295,
                                          -1,
                                          9223372036854775807,
                                          0,
                                          2,
                                          -2147483648ll,
                                          4294967295,
                                          9223372036854775807,
                                          0x3f800000,
                                          -2147483648ll,
                                          0xc0000000,
                                          0x12345678,
                                          -4616189618054758400,
                                          0x3ff80000,
                                          9,
                                          0x4b800000,
                                          0x4b800001,
                                          0x4f7fffff,
                                          0x3dcccccd,
                                          0x3dcccccc,
                                          0x5a000000});
}
TEST(Floats, ExactByDefinition) {
  expect_these<float>(
      "exact",
      {1, 1, 2,  -INFINITY, -1,   2,    1, 0, 0.25f, 0, 3, -2, -1, -1, 2, 3, -2, 10, as<float>(0x3fb504f3),
       1, 1, 48, 1.5f,      2.5f, 1.5f, 0, 1});
}

template <typename T>
void expect_maths(const std::string& name) {
  const Values values = features().at(name)();
  ASSERT_EQ(values.bits.size(), 32u * 24);
  const long double pi = 3.14159265358979323846264338327950288L;
  for (int t = 0; t < 32; t++) {
    const long double x = (t + 1) / 16.0L, power = T(1.7);
    const long double exact[24] = {
        std::exp(x),
        std::exp(-x),
        std::expm1(x),
        std::log(x),
        std::log1p(x),
        std::log2(x),
        std::sin(x),
        std::cos(x),
        std::tan(x),
        std::asin(x / 2),
        std::acos(x / 4),
        std::atan(x),
        std::sinh(x),
        std::cosh(x),
        std::tanh(x),
        std::pow(x, power),
        std::cbrt(x),
        1 / std::sqrt(x),
        std::erf(x),
        std::erfc(x),
        2 * x == std::floor(2 * x) && std::fmod(x, 1.0L) == 0 ? 0 : std::sin(pi * x),
        std::fmod(x, 1.0L) == 0.5L ? 0 : std::cos(pi * x),
        std::hypot(x, 1.0L),
        1 / std::cbrt(x)};
    for (int i = 0; i < 24; i++)
      EXPECT_LE(ulp_between(as<T>(values.bits[t * 24 + i]), T(exact[i])), 4)
          << name << " function " << i << " at " << double(x);
  }
}
TEST(Maths, Float) { expect_maths<float>("maths_float"); }
TEST(Maths, Double) { expect_maths<double>("maths_double"); }

TEST(Maths, Rare) {
  const std::vector<double> values = run<double>("rare_maths");
  ASSERT_EQ(values.size(), 160u);
  for (int t = 0; t < 16; t++) {
    const double x = (t + 1) / 17.0, *v = values.data() + 10 * t;
    const auto root = [](long double square) { return std::sqrt(square); };
    EXPECT_NEAR(std::erf(v[0]), x, 4e-16);
    EXPECT_NEAR(std::erfc(v[1]), x, 4e-16);
    const long double y = 4 * x;
    EXPECT_LE(ulp_between(v[2], double(std::exp(y * y) * std::erfc(y))), 8);
    EXPECT_LE(ulp_between(v[3], double(std::erfc(-(x - 1.0L) / std::sqrt(2.0L)) / 2)), 8);
    EXPECT_NEAR(std::erfc(-v[4] / std::sqrt(2.0)) / 2, x, 4e-16);
    EXPECT_LE(ulp_between(v[5], double(root(x * x + 5.0L))), 4);
    EXPECT_LE(ulp_between(v[6], double(1 / root(x * x + 5.0L))), 4);
    EXPECT_LE(ulp_between(v[7], double(root(x * x + 14.0L))), 4);
    EXPECT_LE(ulp_between(v[8], double(1 / root(x * x + 1.0L))), 4);
    EXPECT_LE(ulp_between(v[9], double(std::pow(10.0L, (long double)x))), 4);
  }
}
TEST(Maths, Fast) {
  const std::vector<float> values = run<float>("fast_maths");
  ASSERT_EQ(values.size(), 192u);
  for (int t = 0; t < 32; t++) {
    const double x = (t + 1) / 16.0;
    const double exact[] = {std::exp(x), std::log(x + 2),  std::pow(x, 1.5),
                            x / 3,       std::log2(x + 2), std::pow(10, x)};
    for (int i = 0; i < 6; i++) EXPECT_LE(ulp_between(values[t * 6 + i], float(exact[i])), 4);
  }
}

namespace {

// The meaning of 16 bits, and the number that is nearest to an exact one among all of them.
struct Format {
  int exponent_bits, fraction_bits;

  double value(unsigned bits) const {
    const int bias = (1 << (exponent_bits - 1)) - 1,
              exponent = bits >> fraction_bits & ((1 << exponent_bits) - 1);
    const int fraction = bits & ((1 << fraction_bits) - 1);
    const double sign = bits >> 15 ? -1 : 1;
    if (exponent == (1 << exponent_bits) - 1) return fraction ? NAN : sign * INFINITY;
    if (exponent == 0) return sign * std::ldexp(fraction, 1 - bias - fraction_bits);
    return sign * std::ldexp((1 << fraction_bits) + fraction, exponent - bias - fraction_bits);
  }

  unsigned nearest(double exact) const {
    unsigned low = 0, high = ((1u << exponent_bits) - 1)
                             << fraction_bits;  // bits of positive numbers are in order
    const double size = std::fabs(exact);
    while (high - low > 1) {
      const unsigned middle = (low + high) / 2;
      (value(middle) <= size ? low : high) = middle;
    }
    const unsigned infinity = ((1u << exponent_bits) - 1) << fraction_bits;
    const double above = high == infinity ? 2 * value(high - 1) - value(high - 2) : value(high);
    const double to_low = size - value(low), to_high = above - size;
    const unsigned chosen = to_low < to_high || (to_low == to_high && low % 2 == 0) ? low : high;
    return chosen | unsigned(std::signbit(exact)) << 15;
  }
};
constexpr Format kHalf{5, 10}, kBfloat16{8, 7};

const std::vector<float> kConverted = {
    0.0f,     -0.0f,   1.0f,    0.1f,    -2.5f,  65504.0f, 65519.0f, 65520.0f,   1e9f,        5.96e-8f,
    2.98e-8f, 2049.0f, 2051.0f, 6.1e-5f, 257.0f, 259.0f,   1e-40f,   3.3895e38f, 1.00390625f, 1.01171875f};

std::vector<std::uint64_t> run_sixteen(const std::string& name) {
  return sixteen_bit_features().at(name)().bits;
}

void expect_conversion(const std::string& name, const Format& format) {
  const auto bits = run_sixteen(name);
  ASSERT_EQ(bits.size(), kConverted.size());
  for (std::size_t i = 0; i < bits.size(); i++)
    EXPECT_EQ(bits[i], format.nearest(kConverted[i])) << kConverted[i];
}

void expect_arithmetic(const std::string& name, const Format& format) {
  const auto bits = run_sixteen(name);
  ASSERT_EQ(bits.size(), 16u * 12);
  auto rounded = [&](double exact) { return format.value(format.nearest(exact)); };
  for (int t = 0; t < 16; t++) {
    const double a = rounded(1.0f + t * 0.37f), b = rounded(0.3f), c = rounded(-0.7f * float(t));
    const std::vector<std::uint64_t> expected = {format.nearest(a + b),
                                                 format.nearest(a - b),
                                                 format.nearest(a * b),
                                                 format.nearest(a / b),
                                                 format.nearest(std::fma(a, b, c)),
                                                 format.nearest(-a),
                                                 a < b,
                                                 a >= b,
                                                 format.nearest(b),
                                                 format.nearest(c),
                                                 1,
                                                 format.nearest(std::fabs(c))};
    for (int i = 0; i < 12; i++)
      EXPECT_EQ(bits[t * 12 + i], expected[i]) << name << " value " << i << " of thread " << t;
  }
}

void expect_floats(const std::string& name, std::size_t size, const std::function<float(int)>& expected) {
  const auto bits = run_sixteen(name);
  ASSERT_EQ(bits.size(), size);
  for (std::size_t i = 0; i < size; i++)
    EXPECT_EQ(as<float>(bits[i]), expected(int(i))) << name << " at " << i;
}

}  // namespace

TEST(SixteenBits, Conversions) {
  expect_conversion("half_conversion", kHalf);
  expect_conversion("bfloat16_conversion", kBfloat16);
}
TEST(SixteenBits, Arithmetic) {
  expect_arithmetic("half_arithmetic", kHalf);
  expect_arithmetic("bfloat16_arithmetic", kBfloat16);
}
TEST(SixteenBits, Pairs) {
  const float expected[] = {1.75f, -1.75f, 1.875f, -2.5f, 3, 25, -2, 1.5f};
  expect_floats("sixteen_bit_pairs", 8, [&](int i) { return expected[i]; });
}
TEST(SixteenBits, ShufflesAndAtomics) {
  expect_floats("sixteen_bit_sharing", 32, [](int t) { return 0.25f * float((t ^ 2) % 4) + 24; });
}
