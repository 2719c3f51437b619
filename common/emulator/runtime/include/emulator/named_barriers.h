// The sixteen barriers of a block that PTX has by number: bar.sync and bar.arrive.
#pragma once

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

// The barrier completes when `count` threads have arrived: all threads of the block if it is 0. Barrier 0
// with all threads is that of __syncthreads.
void sync_named_barrier(unsigned number, unsigned count, Position where);
void arrive_at_named_barrier(unsigned number, unsigned count, Position where);  // does not wait

}  // namespace emulator
EMULATOR_END
