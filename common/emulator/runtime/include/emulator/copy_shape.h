// The size of an asynchronous copy, and how a group divides the copy among its threads.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "emulator/async.h"

namespace cuda {

template <::std::size_t Alignment>
struct aligned_size_t {
  static constexpr ::std::size_t align = Alignment;
  ::std::size_t value;
  explicit constexpr aligned_size_t(::std::size_t bytes) : value(bytes) {}
  constexpr operator ::std::size_t() const { return value; }
};

}  // namespace cuda

EMULATOR_BEGIN
namespace emulator {

template <typename Group>
void begin_group_copy(const Group& group, void* to, const void* from, ::std::size_t bytes,
                      AsyncBarrier* barrier = nullptr) {
  const auto bits = reinterpret_cast<::std::uintptr_t>(to) | reinterpret_cast<::std::uintptr_t>(from) | bytes;
  const ::std::size_t piece = bits % 16 == 0 ? 16 : bits % 8 == 0 ? 8 : bits % 4 == 0 ? 4 : 1;
  const ::std::size_t step = piece * ::std::size_t(group.size());
  for (::std::size_t at = piece * ::std::size_t(group.thread_rank()); at < bytes; at += step)
    begin_copy(static_cast<char*>(to) + at, static_cast<const char*>(from) + at, piece, 0, barrier);
}

}  // namespace emulator
EMULATOR_END
