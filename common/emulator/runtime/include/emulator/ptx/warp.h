// PTX's instructions for warps and blocks: shuffles, votes, barriers, fences.
#pragma once

#include "emulator/named_barriers.h"
#include "emulator/ptx/arithmetic.h"

EMULATOR_BEGIN
namespace emulator::ptx {

// `c` has the last lane of a segment, and from bit 8 on the bits of a lane's number that name the segment.
// Sets `is_inside` to whether the source is in the segment; if not, the lane gets its own value.
template <Operation operation>
std::uint32_t shfl_sync(std::uint32_t value, std::uint32_t b, std::uint32_t c, std::uint32_t mask,
                        bool& is_inside, EMULATOR_HERE) {
  const unsigned lane = current_lane(), segment = c >> 8 & 31, clamp = c & 31, first = lane & segment,
                 last = first | (clamp & ~segment);
  b &= 31;
  int source;
  if constexpr (operation == Operation::shfl_up) {
    source = int(lane) - int(b);
    is_inside = source >= int(last);
  } else {
    source = operation == Operation::shfl_down  ? int(lane + b)
             : operation == Operation::shfl_xor ? int(lane ^ b)
                                                : int(first | (b & ~segment));
    is_inside = source <= int(last);
  }
  return std::uint32_t(warp_collective(operation, mask, value, is_inside ? unsigned(source) : lane, where));
}

inline bool vote_all(bool p, std::uint32_t mask, EMULATOR_HERE) { return __all_sync(mask, p, where); }
inline bool vote_any(bool p, std::uint32_t mask, EMULATOR_HERE) { return __any_sync(mask, p, where); }
inline bool vote_uni(bool p, std::uint32_t mask, EMULATOR_HERE) {
  int is_same;
  __match_all_sync(mask, int(p), &is_same, where);
  return is_same;
}
inline std::uint32_t vote_ballot(bool p, std::uint32_t mask, EMULATOR_HERE) {
  return __ballot_sync(mask, p, where);
}

template <typename T>
std::uint32_t match_any(T value, std::uint32_t mask, EMULATOR_HERE) {
  return __match_any_sync(mask, static_cast<unsigned long long>(value), where);
}
template <typename T>
std::uint32_t match_all(T value, std::uint32_t mask, bool& is_same, EMULATOR_HERE) {
  int same;
  const std::uint32_t lanes = __match_all_sync(mask, static_cast<unsigned long long>(value), &same, where);
  is_same = same;
  return lanes;
}

#define EMULATOR_REDUX(name)                                   \
  template <typename T>                                        \
  T redux_##name(T value, std::uint32_t mask, EMULATOR_HERE) { \
    return __reduce_##name##_sync(mask, value, where);         \
  }
EMULATOR_REDUX(add)
EMULATOR_REDUX(min)
EMULATOR_REDUX(max)
EMULATOR_REDUX(and)
EMULATOR_REDUX(or)
EMULATOR_REDUX(xor)
#undef EMULATOR_REDUX

// The number of one lane of the mask, and whether it is the calling one: here the lowest.
inline std::uint32_t elect(std::uint32_t mask, bool& is_elected, EMULATOR_HERE) {
  __syncwarp(mask, where);
  const auto leader = std::uint32_t(__builtin_ctz(mask));
  is_elected = leader == current_lane();
  return leader;
}

// ---- special registers

inline std::uint32_t warp_id() {
  return (threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) / 32;
}
inline std::uint32_t lanes_before() { return (1u << current_lane()) - 1; }
inline std::uint64_t nanoseconds() { return std::uint64_t(clock64()); }
// The emulator runs one block after another, as if on one multiprocessor.
inline std::uint32_t multiprocessor_id() { return 0; }

}  // namespace emulator::ptx
EMULATOR_END
