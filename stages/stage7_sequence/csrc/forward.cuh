// The forward pass of T steps in one launch.
#pragma once

#include "cells.h"
#include "chain.cuh"
#include "product.cuh"
#include "work.h"

template <typename Cell, typename Unit, int kHeldTiles>
class ForwardBlock {
  using scalar_t = typename Unit::Scalar;
  using math_t = typename Unit::Math;
  static constexpr int kGates = Cell::kGates, kSaved = Cell::kSaved;

 public:
  __device__ static ForwardLayout layout(const Division& division) {
    return ForwardLayout(division, kGates, sizeof(scalar_t), sizeof(math_t), Unit::kHeld);
  }

  __device__ ForwardBlock(const ForwardWork& work, char* memory)
      : work_(work),
        division_(work.division),
        layout_(layout(work.division)),
        chain_(work.division, work.first_chain),
        grid_barrier_(chain_, work.arrivals),
        deliveries_(memory + layout_.arrivals,
                    division_.rows * division_.units * division_.blocks * int(sizeof(scalar_t))),
        memory_(memory),
        partial_(reinterpret_cast<math_t*>(memory + layout_.partial)),
        cells_(reinterpret_cast<math_t*>(memory + layout_.cells)),
        staged_(reinterpret_cast<scalar_t*>(memory + layout_.staged)),
        weights_(layout_.product, memory,
                 {static_cast<const scalar_t*>(work.arrays.weights), work.arrays.weights_stride,
                  work.sizes.state, int64_t(chain_.rank) * division_.units, division_.units, kGates, false}),
        first_pair_(threadIdx.x, division_, chain_, work.sizes) {}

  __device__ void run() {
    start();
    Inputs inputs = load(first_pair_, time(0));
    for (int64_t step = 0; step < work_.sizes.steps; ++step) {
      multiply(state(step));
      __syncthreads();
      // Whole warps, because the lanes of a warp send their results together.
      for (int i = threadIdx.x; i < round_up(division_.rows * division_.units, kWarp); i += kThreads) {
        const bool is_first = i == threadIdx.x;
        const Pair pair = is_first ? first_pair_ : Pair(i, division_, chain_, work_.sizes);
        const Inputs now = is_first ? inputs : load(pair, time(step));
        if (is_first && step + 1 < work_.sizes.steps) inputs = load(pair, time(step + 1));
        const scalar_t h = pair.is_valid ? compute(pair, now, step) : scalar_t(0.0f);
        if (step + 1 < work_.sizes.steps) send(pair, h, step + 1);
      }
      if (step + 1 < work_.sizes.steps) receive(step + 1);
    }
    if (chain_.exchange == Exchange::kCluster) deliveries_.end();
  }

 private:
  // What a pair needs from global memory in a step. The numbers are converted where they are used: a
  // conversion here would wait for them.
  struct Inputs {
    scalar_t x[kGates], bias[kGates];
    int64_t length;
  };

  __device__ int64_t time(int64_t step) const {
    return work_.arrays.reverse ? work_.sizes.steps - 1 - step : step;
  }

  // The chain's state before the step: [rows][row_bytes].
  __device__ char* state(int64_t step) const {
    return memory_ + layout_.states + step % 2 * division_.rows * layout_.product.row_bytes;
  }

  __device__ scalar_t* number_of_state(char* state, const Pair& pair) const {
    return reinterpret_cast<scalar_t*>(state + pair.row * layout_.product.row_bytes) + pair.s;
  }

  __device__ void start() {
    const int row_numbers = layout_.product.row_bytes / int(sizeof(scalar_t));
    const int64_t first_row = int64_t(chain_.index) * division_.rows;
    const Sizes& sizes = work_.sizes;
    scalar_t* states = reinterpret_cast<scalar_t*>(state(0));
    for (int i = threadIdx.x; i < 2 * division_.rows * row_numbers; i += kThreads) {
      const int64_t b = first_row + i / row_numbers, s = i % row_numbers;
      const bool is_there = i / row_numbers < division_.rows && b < sizes.batch && s < sizes.state;
      states[i] =
          is_there ? static_cast<const scalar_t*>(work_.arrays.h0)[b * sizes.state + s] : scalar_t(0.0f);
    }
    for (int i = threadIdx.x; i < division_.rows * division_.units; i += kThreads) {
      const Pair pair(i, division_, chain_, sizes);
      const scalar_t* cell0 = static_cast<const scalar_t*>(work_.arrays.cell0);
      cells_[i] = Cell::kHasCell && pair.is_valid ? math_t(cell0[pair.b * sizes.state + pair.s]) : math_t(0);
    }
    __syncthreads();
    if (chain_.exchange == Exchange::kCluster) deliveries_.start();
  }

  __device__ Inputs load(const Pair& pair, int64_t t) const {
    Inputs inputs = {};
    if (!pair.is_valid) return inputs;
    const auto& [T, B, S] = work_.sizes;
    const Forward& arrays = work_.arrays;
    const scalar_t* x =
        static_cast<const scalar_t*>(arrays.x) + t * B * kGates * S + pair.of_numbers(kGates, work_.sizes);
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) inputs.x[gate] = x[gate * S];
    if (arrays.bias) {
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate)
        inputs.bias[gate] = static_cast<const scalar_t*>(arrays.bias)[gate * S + pair.s];
    }
    inputs.length = arrays.lengths ? arrays.lengths[pair.b] : T;
    return inputs;
  }

  // The recurrent part of the block's gates, as one part for each warp that shares a tile.
  __device__ void multiply(const char* state) {
    const int lane = threadIdx.x % kWarp, split = threadIdx.x / kWarp % layout_.product.split;
    for (int row = 0; row < division_.rows; row += kGroup) {
      math_t* const sums = partial_ + (split * division_.rows + row + lane % 4 * 2) * layout_.partial_stride;
      weights_.multiply_rows(state + row * layout_.product.row_bytes,
                             [&](int tile, const math_t(&top)[2], const math_t(&bottom)[2]) {
                               math_t* const place = sums + tile * kTile + lane / 4;
#pragma unroll
                               for (int i = 0; i < 2; ++i) {
                                 place[i * layout_.partial_stride] = top[i];
                                 place[i * layout_.partial_stride + 8] = bottom[i];
                               }
                             });
    }
  }

  // Computes the gates of a pair and returns the new h.
  __device__ scalar_t compute(const Pair& pair, const Inputs& inputs, int64_t step) {
    const auto& [T, B, S] = work_.sizes;
    const Forward& arrays = work_.arrays;
    const int64_t t = time(step);
    math_t x[kGates], r[kGates], z[kSaved];
    add_recurrent_part(r, pair, inputs);
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) x[gate] = inputs.x[gate];
    Cell::pre_activations(z, x, r);
    scalar_t* const saved =
        static_cast<scalar_t*>(arrays.z) + t * B * kSaved * S + pair.of_numbers(kSaved, work_.sizes);
#pragma unroll
    for (int i = 0; i < kSaved; ++i) {
      const scalar_t rounded = z[i];
      if (arrays.z) saved[i * S] = rounded;
      z[i] = rounded;  // what backward will find
    }
    math_t& cell = cells_[pair.index];
    scalar_t h = *number_of_state(state(step), pair);
    if (t < inputs.length) h = Cell::forward(z, math_t(h), cell);
    static_cast<scalar_t*>(arrays.outputs)[t * B * S + pair.of_bs] = h;
    if (Cell::kHasCell && arrays.cells) static_cast<scalar_t*>(arrays.cells)[t * B * S + pair.of_bs] = cell;
    if (step + 1 < T) return h;
    static_cast<scalar_t*>(arrays.h)[pair.of_bs] = h;
    if (Cell::kHasCell) static_cast<scalar_t*>(arrays.cell)[pair.of_bs] = cell;
    return h;
  }

  // The sum of the parts of all warps that share a tile, in their order.
  __device__ void add_recurrent_part(math_t (&r)[kGates], const Pair& pair, const Inputs& inputs) const {
    const math_t* place = partial_ + pair.row * layout_.partial_stride + pair.unit;
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) r[gate] = inputs.bias[gate];
    for (int i = 0; i < layout_.product.split; ++i, place += division_.rows * layout_.partial_stride) {
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) r[gate] += place[gate * division_.units];
    }
  }

  // Sends the new h of a warp's pairs to the blocks of the chain, this one included. Lanes send vectors:
  // kVectors lanes have all of them, so that several blocks get theirs at once.
  __device__ void send(const Pair& pair, scalar_t h, int64_t number) {
    constexpr int kVectors = kWarp * sizeof(scalar_t) / kVector, kNumbers = kVector / sizeof(scalar_t);
    char* const next = state(number);
    if (chain_.exchange == Exchange::kNone) {
      if (pair.is_valid) *number_of_state(next, pair) = h;
      return;
    }
    __syncwarp();
    staged_[threadIdx.x] = h;
    __syncwarp();
    const int lane = threadIdx.x % kWarp, first = lane % kVectors * kNumbers;
    const uint4 vector = *reinterpret_cast<const uint4*>(staged_ + threadIdx.x - lane + first);
    const int row = (pair.index - lane + first) / division_.units;
    const int unit = (pair.index - lane + first) % division_.units;
    if (row >= division_.rows) return;
    const int place =
        row * layout_.product.row_bytes + (chain_.rank * division_.units + unit) * int(sizeof(scalar_t));
    if (chain_.exchange == Exchange::kGrid) {
      if (lane < kVectors) *reinterpret_cast<uint4*>(state_in_global_memory(number) + place) = vector;
      return;
    }
    for (int block = lane / kVectors; block < chain_.blocks; block += kWarp / kVectors)
      deliveries_.send(number, block, next + place, vector);
  }

  // Waits until the chain's state after so many steps is there.
  __device__ void receive(int64_t number) {
    if (chain_.exchange == Exchange::kNone) return __syncthreads();
    if (chain_.exchange == Exchange::kCluster) return deliveries_.wait(number);
    grid_barrier_.wait();
    copy_state(state(number), state_in_global_memory(number));
  }

  __device__ char* state_in_global_memory(int64_t step) const {
    const int64_t bytes = division_.rows * layout_.product.row_bytes;
    const int64_t chains = gridDim.x / division_.blocks, chain = blockIdx.x / division_.blocks;
    return static_cast<char*>(work_.exchange) + (step % 2 * chains + chain) * bytes;
  }

  // Copies the units of all blocks.
  __device__ void copy_state(char* to, const char* from) const {
    const int bytes = chain_.blocks * division_.units * sizeof(scalar_t), vectors = bytes / kVector;
    for (int i = threadIdx.x; i < division_.rows * vectors; i += kThreads) {
      const int at = i / vectors * layout_.product.row_bytes + i % vectors * kVector;
      *reinterpret_cast<uint4*>(to + at) = *reinterpret_cast<const uint4*>(from + at);
    }
    __syncthreads();
  }

  const ForwardWork& work_;
  const Division division_;
  const ForwardLayout layout_;
  const Chain chain_;
  GridBarrier grid_barrier_;
  const Deliveries deliveries_;
  char* const memory_;
  math_t* const partial_;
  math_t* const cells_;
  scalar_t* const staged_;
  const Weights<Unit, kHeldTiles> weights_;
  const Pair first_pair_;
};
