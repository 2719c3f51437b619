// The layout of a block's shared memory, and which warp multiplies what: computed by the host, which allocates,
// and by the kernels in the same way.
#pragma once

#include "recurrence.h"

constexpr int kWarp = 32, kWarps = 16, kThreads = kWarps * kWarp;
constexpr int kVector = 16;        // bytes that a thread loads at once
constexpr int kChunk = 4 * kVector;  // bytes of a row that a warp multiplies at once
constexpr int kTile = 16;          // rows of weights that a warp multiplies at once
constexpr int kGroup = 8;          // rows of the batch that a warp multiplies at once

__host__ __device__ constexpr int divide_up(int number, int by) { return (number + by - 1) / by; }
__host__ __device__ constexpr int round_up(int number, int to) { return divide_up(number, to) * to; }

// A product of weights [height,width], which stay on chip, and rows of the batch [rows,width]. The weights are cut
// into fragments: kTile rows of kChunk bytes. If there are fewer tiles than warps, several warps share the chunks
// of a tile. Each warp holds its first fragments in registers: those of the first kHeldTiles tiles and of the first
// kHeldChunks chunks. The others are in shared memory.
struct Product {
  int height, width_bytes;
  int held_tiles, held_chunks;

  __host__ __device__ int tiles() const { return divide_up(height, kTile); }
  __host__ __device__ int chunks() const { return divide_up(width_bytes, kChunk); }
  // How many warps share a tile: a power of two.
  __host__ __device__ int split() const {
    int split = 1;
    while (split * 2 * tiles() <= kWarps && split * 2 <= chunks()) split *= 2;
    return split;
  }
  __host__ __device__ int groups() const { return kWarps / split(); }
  __host__ __device__ int tiles_of_warp() const { return divide_up(tiles(), groups()); }
  __host__ __device__ int chunks_of_warp() const { return divide_up(chunks(), split()); }
  __host__ __device__ int working_warps() const {
    return (tiles() < groups() ? tiles() : groups()) * split();
  }
  // Fragments of a warp in shared memory.
  __host__ __device__ int fragments() const {
    const int tiles = tiles_of_warp(), chunks = chunks_of_warp();
    const int held = (tiles < held_tiles ? tiles : held_tiles) * (chunks < held_chunks ? chunks : held_chunks);
    return tiles * chunks - held;
  }
  __host__ __device__ int fragment_bytes() const { return working_warps() * fragments() * kTile * kChunk; }
  // Bytes between rows of the batch in shared memory: an odd number of chunks, so that two neighbouring rows are in
  // different banks.
  __host__ __device__ int row_bytes() const { return (chunks() | 1) * kChunk; }
};

// Forward: the weights of the block's units times the whole state of the chain.
struct ForwardLayout {
  Product product;
  int states;    // [2][rows][row_bytes]: the chain's state before and after the step
  int partial;   // [split][rows][partial_stride]: the recurrent part of z
  int cells;     // [rows][units]
  int bytes;
  int partial_stride;

  __host__ __device__ ForwardLayout(const Division& division, int gates, int scalar_bytes, int math_bytes,
                                    int held_tiles, int held_chunks)
      : product{gates * division.units, division.blocks * division.units * scalar_bytes, held_tiles,
                held_chunks} {
    partial_stride = product.tiles() * kTile + 4;  // 4: lanes that store to different rows use different banks
    states = product.fragment_bytes();
    partial = states + 2 * division.rows * product.row_bytes();
    cells = partial + round_up(product.split() * division.rows * partial_stride * math_bytes, kVector);
    bytes = cells + division.rows * division.units * math_bytes;
  }
};

// Backward: the transposed weights of the block's units times the gradients of their gates gives a part of the sums
// for all units of the chain; each is sent to the block that owns the unit.
struct BackwardLayout {
  Product product;
  int d_z;       // [rows][row_bytes]: gradients of the block's gates
  int received;  // [2][groups of rows][sources][units][kGroup]: parts of the sums, if the exchange is local
  int direct;    // [rows][units]: gradient of h that does not go through the product
  int d_cells;   // [rows][units]
  int bytes;
  int sources;  // of parts of a sum: the warps of the chain that share a tile

  __host__ __device__ BackwardLayout(const Division& division, int gates, int scalar_bytes, int math_bytes,
                                     int held_tiles, int held_chunks)
      : product{division.blocks * division.units, gates * division.units * scalar_bytes, held_tiles,
                held_chunks} {
    const int pairs = division.rows * division.units;
    sources = division.blocks * product.split();
    d_z = product.fragment_bytes();
    received = d_z + division.rows * product.row_bytes();
    direct = received + (division.in_shared_memory ? 2 * received_size(division) * math_bytes : 0);
    d_cells = direct + round_up(pairs * math_bytes, kVector);
    bytes = d_cells + pairs * math_bytes;
  }

  // How many numbers a block receives in a step.
  __host__ __device__ int received_size(const Division& division) const {
    return division.rows * division.units * sources;
  }
};
