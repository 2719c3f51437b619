// The heap from which `malloc` and `new` in kernels take their memory.
#pragma once

#include <cstddef>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

constexpr std::size_t kHeapSize = 8 << 20;  // unless the program sets another one
void set_heap_size(std::size_t bytes);
void clear_heap();  // what kernels have not freed is lost

}  // namespace emulator
EMULATOR_END
