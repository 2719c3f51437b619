// Indices that came out wrong because 32 bits cannot hold them. The address alone tells: `x[threadIdx.x - 1]` of
// thread 0 is 16 GB behind x, and `x[row * columns + column]` up to 8 GB before it if the product exceeds an int.
#pragma once

#include <string>

#include "../memory/access.h"

EMULATOR_BEGIN
namespace emulator {

struct WrappedIndex {
  const void* about;        // the array, as in a cause
  std::string array, text;  // "ranges"; "element 4294967295 of ranges (-1 as unsigned), which has 8 elements"
};
// The array that an access outside of all memory was meant for: with an index that is negative as a signed
// number, and unsigned in the program. `array` is empty if there is none.
WrappedIndex find_negative_index(const Access& access);
// The same for an index that exceeds an int, with the only array that it fits.
WrappedIndex find_overflown_index(const Access& access);
// " (-1 as unsigned)" for the index of an array with so many elements; empty if it is not such an index.
std::string note_on_index(long long index, long long elements);

}  // namespace emulator
EMULATOR_END
