// Barriers of a part of a block: the sixteen that PTX has by number, bar.sync and bar.arrive, and those of
// the tiles of cooperative_groups.h that consist of several warps.
#pragma once

#include <cstddef>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

// The barrier completes when `count` threads have arrived: all threads of the block if it is 0. Barrier 0
// with all threads is that of __syncthreads.
void sync_named_barrier(unsigned number, unsigned count, Position where);
void arrive_at_named_barrier(unsigned number, unsigned count, Position where);  // does not wait

// Tile 0 of a block consists of the threads with the ranks 0 to size - 1, tile 1 of the next ones, and so on.
unsigned rank_in_block();
void sync_tile(unsigned size, Position where);
// Each thread gives a value, and takes that of the thread whose rank in the tile is `source`.
void exchange_in_tile(unsigned size, unsigned source, const void* given, void* taken, std::size_t bytes,
                      Position where);
// All threads of the tile must read from the same thread.
void check_source_in_tile(unsigned size, unsigned source, Position where);

}  // namespace emulator
EMULATOR_END
