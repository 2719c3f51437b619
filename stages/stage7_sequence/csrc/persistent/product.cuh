// The product of weights that stay on chip and a few rows of the batch, by the warps of a block.
#pragma once

#include <cuda_bf16.h>
#include <cuda_fp16.h>

#include "layout.h"

// How numbers of a type are multiplied. A warp adds the product of a fragment of weights, kTile rows of
// kChunk bytes, and the same bytes of kGroup rows of the batch. The order in which the numbers of a chunk are
// added is free, as long as both factors have the same: a lane reads whole vectors. Lane 4 g + q has the
// vectors q of the rows g (`top`) and g + 8 (`bottom`) of the fragment.
//
// Factor: what a lane needs of the batch for one chunk. kTwoLoops: rows that have all chunks get a loop of
// their own. It doubles the code and saves 3 to 6 % in float, but 1 % in double (H200). Chunks are added to
// two sums in turn (`chain`), so that an instruction need not wait for the one before. result: the sums of
// lane 4 g + q, for the rows g and g + 8 of the tile and the rows 2 q and 2 q + 1 of the batch.

// How many fragments a warp has in registers. Each takes 8 of a thread's 255. Sums in double need
// more of them.
template <typename math_t>
constexpr int kHeldFragments = sizeof(math_t) == sizeof(float) ? 16 : 4;

template <typename number_t>
struct FmaUnits {
  using scalar_t = number_t;
  using math_t = number_t;
  using Factor = const char*;  // its vectors are read when they are needed: they would fill the registers
  static constexpr bool kTwoLoops = sizeof(math_t) == sizeof(float);
  static constexpr int kHeld = kHeldFragments<math_t>;

  math_t sums[2][kGroup] = {};

  // rows: the first of the rows of the batch, at the lane's vector. nullptr stands for zeros.
  __device__ static __forceinline__ Factor load(const char* rows, int /*row_bytes*/, bool is_there) {
    return is_there ? rows : nullptr;
  }

  __device__ __forceinline__ void add(int /*chain*/, const uint4& top, const uint4& bottom, Factor rows,
                                      int row_bytes) {
    constexpr int kNumbers = kVector / sizeof(scalar_t);
    if (!rows) return;
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

  __device__ __forceinline__ void result(math_t (&top)[2], math_t (&bottom)[2]) {
    const int quarter = threadIdx.x % 4;
#pragma unroll
    for (int row = 0; row < kGroup; ++row) {
#pragma unroll
      for (int half = 0; half < 2; ++half) {
        math_t& sum = sums[half][row];
        sum += __shfl_xor_sync(0xffffffff, sum, 1);
        sum += __shfl_xor_sync(0xffffffff, sum, 2);
      }
      if (row / 2 != quarter) continue;
      top[row % 2] = sums[0][row];
      bottom[row % 2] = sums[1][row];
    }
  }

  // A number of the batch, and a vector of weights, as they are multiplied.
  __device__ static scalar_t to_factor(scalar_t number) { return number; }
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
__device__ __forceinline__ scalar_t round_to_tf32(scalar_t number) {
  if constexpr (sizeof(scalar_t) == sizeof(float)) {
    uint32_t rounded;
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(rounded) : "f"(number));
    return __uint_as_float(rounded);
  } else {
    return number;
  }
}

// A chunk takes two instructions: one for each half of the lanes' vectors. The rows of the batch are rounded
// to TF32 when they are written: every warp reads them, and would round them again.
template <typename number_t>
struct TensorCores {
  using scalar_t = number_t;
  using math_t = float;
  using Factor = uint4;
  static constexpr bool kTwoLoops = true;
  static constexpr int kHeld = kHeldFragments<math_t>;

  float sums[2][2][4] = {};

  __device__ static __forceinline__ Factor load(const char* rows, int row_bytes, bool is_there) {
    if (!is_there) return uint4{};
    const int row = threadIdx.x % kWarp / 4;
    return *reinterpret_cast<const uint4*>(rows + row * row_bytes);
  }

  __device__ __forceinline__ void add(int chain, const uint4& top, const uint4& bottom, const Factor& factor,
                                      int /*row_bytes*/) {
    multiply(sums[chain][0], {top.x, bottom.x, top.y, bottom.y}, {factor.x, factor.y}, scalar_t());
    multiply(sums[chain][1], {top.z, bottom.z, top.w, bottom.w}, {factor.z, factor.w}, scalar_t());
  }

  __device__ __forceinline__ void result(math_t (&top)[2], math_t (&bottom)[2]) {
#pragma unroll
    for (int i = 0; i < 2; ++i) {
      top[i] = (sums[0][0][i] + sums[0][1][i]) + (sums[1][0][i] + sums[1][1][i]);
      bottom[i] = (sums[0][0][2 + i] + sums[0][1][2 + i]) + (sums[1][0][2 + i] + sums[1][1][2 + i]);
    }
  }

  __device__ static scalar_t to_factor(scalar_t number) { return round_to_tf32(number); }
  __device__ static uint4 prepare(uint4 vector) {
    scalar_t* const numbers = reinterpret_cast<scalar_t*>(&vector);
#pragma unroll
    for (int i = 0; i < kVector / int(sizeof(scalar_t)); ++i) numbers[i] = to_factor(numbers[i]);
    return vector;
  }
};

// The weights of a block's units in global memory: rows of units' gates, or columns if they are transposed.
// Zero outside.
template <typename scalar_t>
struct WeightsOfUnits {
  const scalar_t* weights;  // [G,S,S]
  int64_t stride, state_size, first_unit;
  int units, gates;
  bool is_transposed;

  __device__ scalar_t number(int row, int column) const {
    const int own = is_transposed ? column : row, other = is_transposed ? row : column;
    const int gate = own / units;
    const int64_t s = first_unit + own % units;
    if (gate >= gates || s >= state_size || other >= state_size) return scalar_t(0.0f);
    return weights[(gate * state_size + s) * stride + other];
  }
};

// The weights that a warp multiplies. Nothing in multiply_rows depends on how many fragments there are as
// long as they are in registers, so that the compiler can load all factors before it needs them.
template <typename Unit, int kTiles>
class Weights {
 public:
  using Source = WeightsOfUnits<typename Unit::scalar_t>;

  __device__ __forceinline__ Weights(const Tiling& tiling, char* memory, const Source& source)
      : tiles_(tiling.tiles),
        tile_step_(kWarps / tiling.split),
        first_tile_(warp() / tiling.split),
        first_chunk_(warp() % tiling.split * tiling.chunks_of_warp),
        chunks_(tiling.chunks_of_warp),
        chunks_there_(tiling.chunks - first_chunk_),
        row_bytes_(tiling.row_bytes),
        stored_(reinterpret_cast<uint4*>(memory) + warp() * tiling.stored * 2 * kWarp + lane()) {
    uint4* place = stored_;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int tile = first_tile_ + i * tile_step_;
#pragma unroll
      for (int j = 0; j < kChunks; ++j) {
        const bool is_there = tile < tiles_ && j < chunks_;
        const int chunk = first_chunk_ + j;
        held_[i][j][0] = is_there ? load(source, tile, 0, chunk) : uint4{};
        held_[i][j][1] = is_there ? load(source, tile, 1, chunk) : uint4{};
      }
      if (tile < tiles_) place = store(place, tile, kChunks, source);
    }
    for (int tile = first_tile_ + kTiles * tile_step_; tile < tiles_; tile += tile_step_)
      place = store(place, tile, 0, source);
  }

  // Multiplies kGroup rows, which are in shared memory, and calls use(tile, top, bottom) with the sums of
  // each tile.
  template <typename UseHeld, typename Use>
  __device__ __forceinline__ void multiply_rows(const char* rows, UseHeld use_held, Use use) const {
    if (first_tile_ >= tiles_) return;
    rows += first_chunk_ * kChunk + lane() % 4 * kVector;
    if constexpr (Unit::kTwoLoops) {
      if (kChunks <= chunks_ && kChunks <= chunks_there_) return multiply_tiles<true>(rows, use_held, use);
    }
    multiply_tiles<false>(rows, use_held, use);
  }

  // The warp's tile number i.
  __device__ int tile(int i) const { return first_tile_ + i * tile_step_; }

 private:
  using scalar_t = typename Unit::scalar_t;
  using math_t = typename Unit::math_t;
  using Factor = typename Unit::Factor;
  static constexpr int kChunks = Unit::kHeld / kTiles;

  // kAllThere: the rows have as many chunks as a warp holds fragments, so none needs to be compared.
  template <bool kAllThere, typename UseHeld, typename Use>
  __device__ __forceinline__ void multiply_tiles(const char* rows, UseHeld use_held, Use use) const {
    Factor factors[kChunks];
#pragma unroll
    for (int j = 0; j < kChunks; ++j)
      factors[j] = Unit::load(rows + j * kChunk, row_bytes_, kAllThere || (j < chunks_ && j < chunks_there_));
    const uint4* place = stored_;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
      const int tile = first_tile_ + i * tile_step_;
      if (tile >= tiles_) return;
      Unit unit;
#pragma unroll
      for (int j = 0; j < kChunks; ++j)
        unit.add(j % 2, held_[i][j][0], held_[i][j][1], factors[j], row_bytes_);
      place = add_stored(unit, place, rows, kChunks);
      math_t top[2], bottom[2];
      unit.result(top, bottom);
      use_held(i, top, bottom);
    }
    for (int tile = first_tile_ + kTiles * tile_step_; tile < tiles_; tile += tile_step_) {
      Unit unit;
      place = add_stored(unit, place, rows, 0);
      math_t top[2], bottom[2];
      unit.result(top, bottom);
      use(tile, top, bottom);
    }
  }

  __device__ static int lane() { return threadIdx.x % kWarp; }
  __device__ static int warp() { return threadIdx.x / kWarp; }

  // The lane's vector of the upper or lower half of a fragment. Not inlined, because it is called for
  // each of them.
  __device__ __noinline__ static uint4 load(Source source, int tile, int half, int chunk) {
    constexpr int kNumbers = kVector / sizeof(scalar_t);
    alignas(kVector) scalar_t numbers[kNumbers];
#pragma unroll
    for (int i = 0; i < kNumbers; ++i)
      numbers[i] =
          source.number(tile * kTile + half * 8 + lane() / 4, (chunk * 4 + lane() % 4) * kNumbers + i);
    return Unit::prepare(*reinterpret_cast<const uint4*>(numbers));
  }

  // Stores the tile's fragments from a chunk on. Returns the place for the next tile.
  __device__ __forceinline__ uint4* store(uint4* place, int tile, int from, const Source& source) const {
    for (int j = from; j < chunks_; ++j, place += 2 * kWarp) {
      place[0] = load(source, tile, 0, first_chunk_ + j);
      place[kWarp] = load(source, tile, 1, first_chunk_ + j);
    }
    return place;
  }

  // Adds the stored fragments of a tile, from a chunk on. Several at a time, so that their loads overlap.
  __device__ __forceinline__ const uint4* add_stored(Unit& unit, const uint4* place, const char* rows,
                                                     int from) const {
    constexpr int kAtOnce = 4;
    int j = from;
    for (; j + kAtOnce <= chunks_; j += kAtOnce, place += kAtOnce * 2 * kWarp) {
      Factor factors[kAtOnce];
      uint4 fragments[kAtOnce][2];
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i) {
        factors[i] = Unit::load(rows + (j + i) * kChunk, row_bytes_, j + i < chunks_there_);
        fragments[i][0] = place[i * 2 * kWarp];
        fragments[i][1] = place[i * 2 * kWarp + kWarp];
      }
#pragma unroll
      for (int i = 0; i < kAtOnce; ++i)
        unit.add(i % 2, fragments[i][0], fragments[i][1], factors[i], row_bytes_);
    }
    for (; j < chunks_; ++j, place += 2 * kWarp)
      unit.add(0, place[0], place[kWarp], Unit::load(rows + j * kChunk, row_bytes_, j < chunks_there_),
               row_bytes_);
    return place;
  }

  const int tiles_, tile_step_, first_tile_, first_chunk_, chunks_, chunks_there_, row_bytes_;
  uint4* const stored_;
  uint4 held_[kTiles][kChunks][2];
};
