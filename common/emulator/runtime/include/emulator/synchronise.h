// Barriers, fences, shuffles and votes.
//
// As on devices since Volta: threads that returned count as arrived, whether at
// __syncthreads or in a mask. A lane that its own mask does not name ends the launch. A
// shuffle from a lane that is not in the mask reads the pattern of uninitialised memory.
// `__activemask` names the lanes that are at the same call when nothing else can run: those
// that took the same branch, as on a device that brings lanes together wherever it can.
#pragma once

#include <cstdint>
#include <cstring>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

struct Votes {
  int ayes, all;  // threads that said yes, threads there
};
Votes sync_block(Operation operation, int predicate, Position where);

// Lanes meet under an operation and a mask; each leaves `value` and takes what `operation` makes of all.
std::uint64_t warp_collective(Operation operation, std::uint32_t mask, std::uint64_t value, unsigned source,
                              Position where);

std::uint32_t active_lanes(Position where);
// The active lanes, for a function that has no mask: a warning names the function that takes its place.
std::uint32_t old_mask(const char* function, Position where);
unsigned current_lane();
void fence();
void yield_thread();  // lets other threads, also those of blocks not yet open, run first

// Reads that may wait for other threads' writes: a thread that polls often enough gives others a turn.
extern EMULATOR_OF_CORE int polls_left;
__attribute__((no_sanitize("thread"))) inline void count_poll() {
  if (--polls_left < 0) yield_thread();
}

// The lane that PTX's shfl reads from: `b` is taken modulo 32, and one outside of the segment means oneself.
inline unsigned source_lane(Operation operation, unsigned lane, unsigned b, int width) {
  const unsigned segment = (32u - unsigned(width)) & 31u, first = lane & segment,
                 last = first | (31u & ~segment);
  b &= 31u;
  switch (operation) {
    case Operation::shfl:
      return first | (b & ~segment);
    case Operation::shfl_up:
      return int(lane) - int(b) >= int(first) ? lane - b : lane;
    case Operation::shfl_down:
      return lane + b <= last ? lane + b : lane;
    default:
      return (lane ^ b) <= last ? lane ^ b : lane;
  }
}

template <typename T>
T shuffle(Operation operation, std::uint32_t mask, T value, unsigned b, int width, Position where) {
  static_assert(sizeof(T) <= sizeof(std::uint64_t));
  std::uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = warp_collective(operation, mask, bits, source_lane(operation, current_lane(), b, width), where);
  std::memcpy(static_cast<void*>(&value), &bits, sizeof(T));
  return value;
}

}  // namespace emulator

inline void __syncthreads(EMULATOR_HERE) { emulator::sync_block(emulator::Operation::syncthreads, 0, where); }
inline int __syncthreads_count(int predicate, EMULATOR_HERE) {
  return emulator::sync_block(emulator::Operation::syncthreads_count, predicate, where).ayes;
}
inline int __syncthreads_and(int predicate, EMULATOR_HERE) {
  const auto votes = emulator::sync_block(emulator::Operation::syncthreads_and, predicate, where);
  return votes.ayes == votes.all;
}
inline int __syncthreads_or(int predicate, EMULATOR_HERE) {
  return emulator::sync_block(emulator::Operation::syncthreads_or, predicate, where).ayes != 0;
}
inline void __syncwarp(unsigned mask = 0xffffffff, EMULATOR_HERE) {
  emulator::warp_collective(emulator::Operation::syncwarp, mask, 0, 0, where);
}

inline void __threadfence() { emulator::fence(); }
inline void __threadfence_block() { emulator::fence(); }
inline void __threadfence_system() { emulator::fence(); }
inline void __nanosleep(unsigned) { emulator::yield_thread(); }

inline void __trap() { emulator::abandon("stops at __trap()"); }
long long clock64();  // nanoseconds; of no use as a time

inline unsigned __activemask(EMULATOR_HERE) { return emulator::active_lanes(where); }
inline unsigned __ballot_sync(unsigned mask, int predicate, EMULATOR_HERE) {
  return unsigned(emulator::warp_collective(emulator::Operation::ballot, mask, predicate != 0, 0, where));
}
inline int __any_sync(unsigned mask, int predicate, EMULATOR_HERE) {
  return int(emulator::warp_collective(emulator::Operation::any, mask, predicate != 0, 0, where));
}
inline int __all_sync(unsigned mask, int predicate, EMULATOR_HERE) {
  return int(emulator::warp_collective(emulator::Operation::all, mask, predicate != 0, 0, where));
}

#define EMULATOR_SHUFFLES(T)                                                                                 \
  inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, EMULATOR_HERE) {                    \
    return emulator::shuffle(emulator::Operation::shfl, mask, value, unsigned(lane), width, where);          \
  }                                                                                                          \
  inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATOR_HERE) {           \
    return emulator::shuffle(emulator::Operation::shfl_up, mask, value, delta, width, where);                \
  }                                                                                                          \
  inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, EMULATOR_HERE) {         \
    return emulator::shuffle(emulator::Operation::shfl_down, mask, value, delta, width, where);              \
  }                                                                                                          \
  inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, EMULATOR_HERE) {           \
    return emulator::shuffle(emulator::Operation::shfl_xor, mask, value, unsigned(lane_mask), width, where); \
  }

EMULATOR_SHUFFLES(int)
EMULATOR_SHUFFLES(unsigned int)
EMULATOR_SHUFFLES(long)
EMULATOR_SHUFFLES(unsigned long)
EMULATOR_SHUFFLES(long long)
EMULATOR_SHUFFLES(unsigned long long)
EMULATOR_SHUFFLES(float)
EMULATOR_SHUFFLES(double)

// The lanes of the mask that hold the same value; for `all`, all of them or none, and whether it was all.
#define EMULATOR_MATCHES(T)                                                                           \
  inline unsigned __match_any_sync(unsigned mask, T value, EMULATOR_HERE) {                           \
    std::uint64_t bits = 0;                                                                           \
    std::memcpy(&bits, &value, sizeof(T));                                                            \
    return unsigned(emulator::warp_collective(emulator::Operation::match_any, mask, bits, 0, where)); \
  }                                                                                                   \
  inline unsigned __match_all_sync(unsigned mask, T value, int* same, EMULATOR_HERE) {                \
    std::uint64_t bits = 0;                                                                           \
    std::memcpy(&bits, &value, sizeof(T));                                                            \
    const auto lanes =                                                                                \
        unsigned(emulator::warp_collective(emulator::Operation::match_all, mask, bits, 0, where));    \
    *same = lanes != 0;                                                                               \
    return lanes;                                                                                     \
  }

EMULATOR_MATCHES(int)
EMULATOR_MATCHES(unsigned int)
EMULATOR_MATCHES(long)
EMULATOR_MATCHES(unsigned long)
EMULATOR_MATCHES(long long)
EMULATOR_MATCHES(unsigned long long)
EMULATOR_MATCHES(float)
EMULATOR_MATCHES(double)
#undef EMULATOR_MATCHES

// The sum, or another combination, of the values of the lanes in the mask.
#define EMULATOR_REDUCTION(T, name)                                                                \
  inline T __reduce_##name##_sync(unsigned mask, T value, EMULATOR_HERE) {                         \
    const auto bits = std::uint64_t(std::int64_t(value));                                          \
    return T(emulator::warp_collective(emulator::Operation::reduce_##name, mask, bits, 0, where)); \
  }

EMULATOR_REDUCTION(int, add)
EMULATOR_REDUCTION(int, min)
EMULATOR_REDUCTION(int, max)
EMULATOR_REDUCTION(unsigned, add)
EMULATOR_REDUCTION(unsigned, min)
EMULATOR_REDUCTION(unsigned, max)
EMULATOR_REDUCTION(unsigned, and)
EMULATOR_REDUCTION(unsigned, or)
EMULATOR_REDUCTION(unsigned, xor)
#undef EMULATOR_REDUCTION

// The functions without a mask, which devices since Volta do not have: their mask is that of the active
// lanes. As templates, they leave functions of these names to programs that have their own.
#define EMULATOR_OLD_SHUFFLE(name, T_lane)                                           \
  template <typename T>                                                              \
  T name(T value, T_lane lane, int width = 32, EMULATOR_HERE) {                      \
    return name##_sync(emulator::old_mask(#name, where), value, lane, width, where); \
  }
#define EMULATOR_OLD_VOTE(name, Result)                                     \
  template <typename Predicate>                                             \
  Result name(Predicate predicate, EMULATOR_HERE) {                         \
    return name##_sync(emulator::old_mask(#name, where), predicate, where); \
  }
EMULATOR_OLD_SHUFFLE(__shfl, int)
EMULATOR_OLD_SHUFFLE(__shfl_up, unsigned)
EMULATOR_OLD_SHUFFLE(__shfl_down, unsigned)
EMULATOR_OLD_SHUFFLE(__shfl_xor, int)
EMULATOR_OLD_VOTE(__ballot, unsigned)
EMULATOR_OLD_VOTE(__any, int)
EMULATOR_OLD_VOTE(__all, int)
#undef EMULATOR_OLD_VOTE
#undef EMULATOR_OLD_SHUFFLE
EMULATOR_END
