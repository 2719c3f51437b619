// The layout of a block's shared memory, and which warp multiplies what. The host, which allocates, and the
// kernels compute both in the same way.
#pragma once

#include "plan.h"

constexpr int kWarp = 32, kWarps = 8, kThreads = kWarps * kWarp;
constexpr int kVector = 16;           // bytes that a thread loads at once
constexpr int kChunk = 4 * kVector;   // bytes of a row that a warp multiplies at once
constexpr int kTile = 16;             // rows of weights that a warp multiplies at once
constexpr int kBlocksOfCluster = 16;  // at most
constexpr int kDeliveriesBytes = 16;  // the counters of Deliveries
constexpr int kGroup = 8;             // rows of the batch that a warp multiplies at once
constexpr int kRoundsAtOnce = 2;      // of gates that a thread computes

__host__ __device__ constexpr int divide_up(int number, int by) { return (number + by - 1) / by; }
__host__ __device__ constexpr int min_of(int a, int b) { return a < b ? a : b; }
__host__ __device__ constexpr int round_up(int number, int to) { return divide_up(number, to) * to; }

// In one round, the threads of a block compute the gates of as many whole rows as there are threads for.
__host__ __device__ inline int rounds_of(const Partition& partition) {
  return divide_up(partition.rows, kThreads / partition.units);
}

// How the warps of a block divide a product of weights [height,width], which stay on chip, and rows of the
// batch [rows,width]. The weights are cut into fragments: kTile rows of kChunk bytes. The warps divide the
// tiles among them, and `split` warps divide the chunks of a tile. Each warp has the first `held_chunks`
// fragments of its first `held_tiles` tiles in registers, and the others in shared memory.
struct Tiling {
  int tiles, chunks;
  int held_tiles, held_chunks;
  int split = 1;  // a power of two
  int tiles_of_warp, chunks_of_warp;
  int stored;     // fragments of a warp in shared memory
  int row_bytes;  // between rows of the batch in shared memory

  __host__ __device__ Tiling(int height, int width_bytes, int held_tiles, int held)
      : tiles(divide_up(height, kTile)),
        chunks(divide_up(width_bytes, kChunk)),
        held_tiles(held_tiles),
        held_chunks(held / held_tiles) {
    // An odd number of chunks, so that two neighbouring rows are in different banks.
    row_bytes = (chunks | 1) * kChunk;
    for (int candidate = 2; candidate <= kWarps; candidate *= 2)
      if (fragments(candidate) < fragments(split)) split = candidate;
    tiles_of_warp = divide_up(tiles, kWarps / split);
    chunks_of_warp = divide_up(chunks, split);
    stored = fragments(split) - min_of(tiles_of_warp, held_tiles) * min_of(chunks_of_warp, held_chunks);
  }

  // Of a warp, if so many warps divide a tile.
  __host__ __device__ int fragments(int split) const {
    return divide_up(tiles, kWarps / split) * divide_up(chunks, split);
  }
  // That a warp multiplies: the tiles in registers are padded.
  __host__ __device__ int multiplied() const {
    const int padding = held_chunks > chunks_of_warp ? held_chunks - chunks_of_warp : 0;
    return fragments(split) + min_of(tiles_of_warp, held_tiles) * padding;
  }
  __host__ __device__ int stored_bytes() const {
    return min_of(tiles, kWarps / split) * split * stored * kTile * kChunk;
  }
};

// Forward: the weights of the block's units times the whole state of the chain.
struct ForwardLayout {
  Tiling tiling;
  int states;      // [2][rows][row_bytes]: the chain's state before and after the step
  int partial;     // [split][rows][partial_stride]: the recurrent part of z
  int cells;       // [rounds][kThreads]: the cells of each thread
  int own_states;  // [rounds][kThreads]: their h, not rounded for the product
  int staged;      // [kRoundsAtOnce][kWarps][kWarp]: new states before they are sent
  int lengths;     // [rows]: how many steps each row has
  int deliveries;  // what Deliveries needs
  int bytes;
  int partial_stride;

  __host__ __device__ ForwardLayout(const Partition& partition, int gates, int scalar_bytes, int math_bytes,
                                    int held)
      : tiling(gates * partition.units, partition.blocks * partition.units * scalar_bytes,
               partition.held_tiles, held) {
    partial_stride = tiling.tiles * kTile + 4;  // 4: lanes that store to different rows use different banks
    states = tiling.stored_bytes();
    partial = states + 2 * partition.rows * tiling.row_bytes;
    cells = partial + round_up(tiling.split * partition.rows * partial_stride * math_bytes, kVector);
    own_states = cells + rounds_of(partition) * kThreads * math_bytes;
    staged = own_states + rounds_of(partition) * kThreads * scalar_bytes;
    lengths = staged + kRoundsAtOnce * kThreads * scalar_bytes;
    deliveries = lengths + partition.rows * int(sizeof(int64_t));
    bytes = deliveries + kDeliveriesBytes;
  }
};

// Backward: the transposed weights of the block's units times the gradients of their gates gives a part of
// the sums for all units of the chain; each is sent to the block that owns the unit.
struct BackwardLayout {
  Tiling tiling;
  int d_z;         // [2][rows][row_bytes]: gradients of the block's gates, in this step and the one before
  int received;    // [2][groups of rows][sources][units][kGroup]: parts of the sums, if the exchange is local
  int direct;      // [rounds][kThreads]: gradients of h that do not go through the product
  int d_cells;     // [rounds][kThreads]
  int lengths;     // [rows]: how many steps each row has
  int deliveries;  // what Deliveries needs
  int bytes;
  int sources;  // of parts of a sum: the warps of the chain that share a tile

  __host__ __device__ BackwardLayout(const Partition& partition, int gates, int scalar_bytes, int math_bytes,
                                     int held)
      : tiling(partition.blocks * partition.units, gates * partition.units * scalar_bytes,
               partition.held_tiles, held) {
    const int pairs = rounds_of(partition) * kThreads;
    sources = partition.blocks * tiling.split;
    d_z = tiling.stored_bytes();
    received = d_z + 2 * partition.rows * tiling.row_bytes;
    direct =
        received + (partition.exchange == Exchange::kGrid ? 0 : 2 * received_size(partition) * math_bytes);
    d_cells = direct + pairs * math_bytes;
    lengths = d_cells + pairs * math_bytes;
    deliveries = lengths + partition.rows * int(sizeof(int64_t));
    bytes = deliveries + kDeliveriesBytes;
  }

  // How many numbers a block receives in a step.
  __host__ __device__ int received_size(const Partition& partition) const {
    return partition.rows * partition.units * sources;
  }
};
