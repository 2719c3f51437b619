// What one request of a warp costs.
#pragma once

#include <cstdint>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

constexpr unsigned kLanes = 32;
constexpr std::uintptr_t kSector = 32;  // bytes: the smallest transfer of global memory

enum class Use : std::uint8_t {
  global_load,
  global_store,
  global_atomic,
  shared_load,
  shared_store,
  shared_atomic,
};
const char* name_of(Use use);  // "global load"

// The addresses that the lanes of a warp give at one execution of an instruction.
struct Request {
  std::uint32_t lanes = 0;  // those that take part
  std::uintptr_t size = 0;  // bytes a lane
  std::uintptr_t addresses[kLanes];
};

struct Totals {
  std::uint64_t requests = 0, lanes = 0, bytes = 0;
  std::uint64_t sectors = 0, ideal_sectors = 0;  // of global memory; ideal: the same bytes without gaps
  std::uint64_t wavefronts = 0, conflicts = 0;   // of shared memory

  void add(const Request& request, Use use);
  void operator+=(const Totals& other);
};

}  // namespace emulator
EMULATOR_END
