// What CUB's block and warp functions share: operators, ranks, and results that are undefined.
#pragma once

#include <cstring>
#include <type_traits>

#include "cuda/functional"
#include "cuda/std/functional"
#include "cuda_runtime.h"

namespace cub {

template <typename Key, typename Value>
struct KeyValuePair {
  using key_type = Key;
  using value_type = Value;
  Key key;
  Value value;
};
struct ArgMax {
  template <typename Pair>
  Pair operator()(const Pair& a, const Pair& b) const {
    return b.value > a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <typename Pair>
  Pair operator()(const Pair& a, const Pair& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

struct NullType {};

}  // namespace cub

EMULATOR_BEGIN
namespace emulator::cub {

inline unsigned thread_rank() { return threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z); }

// Shared memory for a block function that the program gives no storage.
template <typename Storage>
Storage& own_storage(Position where) {
  return shared<Storage>(-(1000 * long(where.line()) + long(where.column())), "TempStorage", where);
}

// What threads get that have no result: uninitialised memory, a NaN as a number.
template <typename T>
T undefined() {
  T value;
  auto* bytes = reinterpret_cast<unsigned char*>(&value);
  for (std::size_t i = 0; i < sizeof(T); i++) bytes[i] = (kUninitialised >> 8 * (i % 4)) & 0xff;
  return value;
}

// The sum of an array in the order of its elements.
template <typename T, int count, typename Operator>
T reduce_items(const T (&items)[count], Operator op) {
  T sum = items[0];
  for (int i = 1; i < count; i++) sum = op(sum, items[i]);
  return sum;
}

}  // namespace emulator::cub
EMULATOR_END
