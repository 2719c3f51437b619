// The product of weights that stay on chip and a few rows of the batch, by the warps of a block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "layout.h"

// How numbers of a type are multiplied. A warp adds the product of a fragment of weights, kTile rows of
// kChunk bytes, and the same bytes of kGroup rows of the batch. The order in which the numbers of a chunk are
// added is free, as long as both factors have the same: a lane reads whole vectors. Lane 4 g + q has the
// vectors q of the rows g
// (`top`) and g + 8 (`bottom`) of the fragment.
//
// result: the sums of lane 4 g + q, for the rows g and g + 8 of the tile and the rows 2 q and 2 q + 1 of the
// batch.

// How many fragments of a warp are in registers. Each takes 8 of a thread's 255; sums in double need more of
// them.
template <typename math_t>
constexpr int kHeldFragments = sizeof(math_t) == sizeof(float) ? 16 : 4;

template <typename scalar_t>
struct FmaUnits {
  using Scalar = scalar_t;
  using Math = scalar_t;
  static constexpr int kHeld = kHeldFragments<Math>;

  Math sums[2][kGroup] = {};

  // rows: the first row of the batch, at the lane's vector.
  __device__ __forceinline__ void add(const uint4& top, const uint4& bottom, const char* rows,
                                      int row_bytes) {
    constexpr int kNumbers = kVector / sizeof(scalar_t);
    const scalar_t* of_top = reinterpret_cast<const scalar_t*>(&top);
    const scalar_t* of_bottom = reinterpret_cast<const scalar_t*>(&bottom);
#pragma unroll
    for (int row = 0; row < kGroup; ++row) {
      const uint4 vector = *reinterpret_cast<const uint4*>(rows + row * row_bytes);
      const scalar_t* of_row = reinterpret_cast<const scalar_t*>(&vector);
#pragma unroll
      for (int i = 0; i < kNumbers; ++i) {
        sums[0][row] += of_top[i] * of_row[i];
        sums[1][row] += of_bottom[i] * of_row[i];
      }
    }
  }

  __device__ __forceinline__ void result(Math (&top)[2], Math (&bottom)[2]) {
    const int quarter = threadIdx.x % 4;
#pragma unroll
    for (int row = 0; row < kGroup; ++row) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        Math& sum = sums[half][row];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
      }
      if (row / 2 != quarter) continue;
      top[row % 2] = sums[0][row];
      bottom[row % 2] = sums[1][row];
    }
  }

  // The weights as they are multiplied.
  __device__ static uint4 prepare(const uint4& vector) { return vector; }
};

// d += a * b for tensor cores, in the layout of mma.sync: a has 16 rows, b 8 columns.
__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                         half) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                         __nv_bfloat16) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

__device__ __forceinline__ void multiply(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                                         float) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Rounds a float to TF32: 10 bits of the mantissa. Other types are as they are.
template <typename scalar_t>
__device__ __forceinline__ uint4 round_to_tf32(uint4 vector) {
  if constexpr (sizeof(scalar_t) == sizeof(float)) {
    asm("cvt.rna.tf32.f32 %0, %0;" : "+r"(vector.x));
    asm("cvt.rna.tf32.f32 %0, %0;" : "+r"(vector.y));
    asm("cvt.rna.tf32.f32 %0, %0;" : "+r"(vector.z));
    asm("cvt.rna.tf32.f32 %0, %0;" : "+r"(vector.w));
  }
  return vector;
}

// A chunk takes two instructions: one for each half of the lanes' vectors. Two sums take turns, so that an
// instruction need not wait for the one before.
template <typename scalar_t>
struct TensorCores {
  using Scalar = scalar_t;
  using Math = float;
  static constexpr int kHeld = kHeldFragments<Math>;

  float sums[2][4] = {};

  __device__ __forceinline__ void add(const uint4& top, const uint4& bottom, const char* rows,
                                      int row_bytes) {
    const int row = threadIdx.x % kWarp / 4;
    const uint4 vector = round_to_tf32<scalar_t>(*reinterpret_cast<const uint4*>(rows + row * row_bytes));
    multiply(sums[0], {top.x, bottom.x, top.y, bottom.y}, {vector.x, vector.y}, scalar_t());
    multiply(sums[1], {top.z, bottom.z, top.w, bottom.w}, {vector.z, vector.w}, scalar_t());
  }

  __device__ __forceinline__ void result(Math (&top)[2], Math (&bottom)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      top[i] = sums[0][i] + sums[1][i];
      bottom[i] = sums[0][2 + i] + sums[1][2 + i];
    }
  }

  __device__ static uint4 prepare(const uint4& vector) { return round_to_tf32<scalar_t>(vector); }
};

// The weights that a warp multiplies: fragments of its first tile, then of its second, and so on. The first
// kHeld are in registers, the others in shared memory.
template <typename Unit>
class Weights {
 public:
  // number(row, column) is an element of the weights: zero outside of them.
  template <typename Number>
  __device__ __forceinline__ Weights(const Product& product, char* memory, Number number)
      : tiles_(product.tiles),
        tile_step_(kWarps / product.split),
        first_tile_(warp() / product.split),
        first_chunk_(warp() % product.split * product.chunks_of_warp),
        chunks_(max(0, min(product.chunks - first_chunk_, product.chunks_of_warp))),
        row_bytes_(product.row_bytes),
        stored_(reinterpret_cast<uint4*>(memory) + warp() * product.stored * 2 * kWarp + lane()) {
    Position at(*this);
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (at.tile < tiles_ && at.chunk < chunks_) {
        load(held_[i], at.tile, first_chunk_ + at.chunk, number);
        at.advance(*this);
      }
    for (uint4* place = stored_; at.tile < tiles_ && at.chunk < chunks_; place += 2 * kWarp) {
      uint4 fragment[2];
      load(fragment, at.tile, first_chunk_ + at.chunk, number);
      place[0] = fragment[0];
      place[kWarp] = fragment[1];
      at.advance(*this);
    }
  }

  // Multiplies kGroup rows, which are in shared memory, and calls use(tile, top, bottom) with the sums of
  // each tile.
  template <typename Use>
  __device__ __forceinline__ void multiply_rows(const char* rows, Use use) const {
    rows += first_chunk_ * kChunk + lane() % 4 * kVector;
    Position at(*this);
    Unit unit;
    auto add = [&](const uint4& top, const uint4& bottom) {
      unit.add(top, bottom, rows + at.chunk * kChunk, row_bytes_);
      if (!at.advance(*this)) return;
      finish(unit, at.tile - tile_step_, use);
      unit = Unit();
    };
    if (chunks_ == 0) {  // other warps have all chunks of the tiles
      for (; at.tile < tiles_; at.tile += tile_step_) finish(unit, at.tile, use);
      return;
    }
#pragma unroll
    for (int i = 0; i < kHeld; ++i)
      if (at.tile < tiles_) add(held_[i][0], held_[i][1]);
    for (const uint4* place = stored_; at.tile < tiles_; place += 2 * kWarp) add(place[0], place[kWarp]);
  }

 private:
  using Scalar = typename Unit::Scalar;
  using Math = typename Unit::Math;
  static constexpr int kHeld = Unit::kHeld;

  // Of a fragment, among those of the warp.
  struct Position {
    int tile, chunk = 0;

    __device__ __forceinline__ explicit Position(const Weights& weights) : tile(weights.first_tile_) {}
    // Returns whether this was the tile's last fragment.
    __device__ __forceinline__ bool advance(const Weights& weights) {
      if (++chunk < weights.chunks_) return false;
      chunk = 0;
      tile += weights.tile_step_;
      return true;
    }
  };

  __device__ static int lane() { return threadIdx.x % kWarp; }
  __device__ static int warp() { return threadIdx.x / kWarp; }

  template <typename Number>
  __device__ __forceinline__ static void load(uint4 (&fragment)[2], int tile, int chunk, Number number) {
    constexpr int kNumbers = kVector / sizeof(Scalar);
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      alignas(kVector) Scalar numbers[kNumbers];
#pragma unroll
      for (int i = 0; i < kNumbers; ++i)
        numbers[i] = number(tile * kTile + half * 8 + lane() / 4, (chunk * 4 + lane() % 4) * kNumbers + i);
      fragment[half] = Unit::prepare(*reinterpret_cast<const uint4*>(numbers));
    }
  }

  template <typename Use>
  __device__ __forceinline__ static void finish(Unit& unit, int tile, Use use) {
    Math top[2], bottom[2];
    unit.result(top, bottom);
    use(tile, top, bottom);
  }

  const int tiles_, tile_step_, first_tile_, first_chunk_, chunks_, row_bytes_;
  uint4* const stored_;
  uint4 held_[kHeld][2];
};
