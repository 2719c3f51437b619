// Which bytes of an allocation are initialised.
#pragma once

#include "../memory/allocation.h"

EMULATOR_BEGIN
namespace emulator {

// The host wrote to it (memset, copies).
void mark_initialised(Allocation& allocation, const void* begin, std::size_t size);
void mark_uninitialised(Allocation& allocation, const void* begin, std::size_t size);
// A copy from device memory: each byte of `to` is initialised if that of `from` is.
void copy_initialisation(Allocation& to, const void* to_begin, const Allocation& from, const void* from_begin,
                         std::size_t size);
// How many bytes of a range are uninitialised, where the first of them is, and how many are adjacent.
struct UninitialisedBytes {
  std::size_t bytes, first, longest;  // `first` counts from the range's begin
};
UninitialisedBytes uninitialised_in(const Allocation& allocation, const void* begin, std::size_t size);
bool is_untouched(const Allocation& allocation);  // all of it is uninitialised

}  // namespace emulator
EMULATOR_END
