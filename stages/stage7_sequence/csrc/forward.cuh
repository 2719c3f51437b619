// The forward pass of T steps in one launch.
#pragma once

#include "cells.h"
#include "chain.cuh"
#include "product.cuh"

template <typename Cell, typename Unit, int kHeldTiles>
class ForwardBlock {
  using scalar_t = typename Unit::Scalar;
  using math_t = typename Unit::Math;
  static constexpr int kGates = Cell::kGates, kSaved = Cell::kSaved;

 public:
  __device__ ForwardBlock(const ForwardWork& work, char* memory)
      : arrays_(work.arrays),
        sizes_(work.sizes),
        division_(work.division),
        layout_(work.division, kGates, sizeof(scalar_t), sizeof(math_t), Unit::kHeld),
        chain_(work.division, work.first_chain),
        grid_barrier_(chain_, work.arrivals),
        deliveries_(memory + layout_.deliveries,
                    division_.rows * division_.units * division_.blocks * int(sizeof(scalar_t))),
        exchange_(static_cast<char*>(work.exchange)),
        memory_(memory),
        share_(division_, chain_, sizes_),
        weights_(layout_.product, memory,
                 {static_cast<const scalar_t*>(arrays_.weights), arrays_.weights_stride, sizes_.state,
                  int64_t(chain_.rank) * division_.units, division_.units, kGates, false}) {}

  __device__ void run() {
    start();
    const int64_t first = arrays_.reverse ? sizes_.steps - 1 : 0;
    const int direction = arrays_.reverse ? -1 : 1;
    Cursor<scalar_t, kGates> x(arrays_.x, share_, sizes_, first, direction);
    Cursor<scalar_t, kSaved> z(arrays_.z, share_, sizes_, first, direction);
    Cursor<scalar_t, 1> outputs(arrays_.outputs, share_, sizes_, first, direction);
    Cursor<scalar_t, 1> cells(arrays_.cells, share_, sizes_, first, direction);
    const Cursor<scalar_t, 1> last_h(arrays_.h, share_, sizes_), last_cell(arrays_.cell, share_, sizes_);
    const Sender sender(*this);

    // Round 0 is apart: its inputs are loaded a step ahead, and its indices are known to the compiler.
    Inputs ahead = load(x, 0);
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      const int64_t t = first + direction * step;
      const bool is_last = step + 1 == sizes_.steps;
      multiply(state(step));
      __syncthreads();
      auto compute_round = [&](int round, const Inputs& inputs) __attribute__((always_inline)) {
        scalar_t h = scalar_t(0.0f);
        if (is_valid(round)) {
          math_t& cell = cell_of(round);
          h = compute(inputs, z, round, t, state(step), cell);
          outputs(round) = h;
          if (cells.is_there()) cells(round) = cell;
          if (is_last) last_h(round) = h;
          if (is_last && last_cell.is_there()) last_cell(round) = cell;
        }
        if (!is_last) sender.send(*this, h, round, step + 1);
      };
      const Inputs inputs = ahead;
      const Cursor<scalar_t, kGates> now = x;
      x.advance();
      if (!is_last) ahead = load(x, 0);
      compute_round(0, inputs);
      for (int round = 1; round < share_.rounds; ++round) compute_round(round, load(now, round));
      if (!is_last) receive(step + 1);
      z.advance(), outputs.advance(), cells.advance();
    }
    if (chain_.exchange == Exchange::kCluster) deliveries_.end();
  }

 private:
  // What a thread needs from global memory for one row in a step. The numbers are converted where they are
  // used: a conversion here would wait for them.
  struct Inputs {
    Loaded<scalar_t> x[kGates], bias[kGates];
    int64_t length;
  };

  // The chain's state after so many steps: [rows][row_bytes].
  __device__ char* state(int64_t number) const {
    return memory_ + layout_.states + number % 2 * division_.rows * layout_.product.row_bytes;
  }

  __device__ bool is_valid(int round) const { return share_.is_valid(round, division_, sizes_); }

  __device__ scalar_t& number_of_state(char* state, int round) const {
    return reinterpret_cast<scalar_t*>(state + share_.row(round) * layout_.product.row_bytes)[share_.s];
  }

  __device__ math_t& cell_of(int round) const {
    return reinterpret_cast<math_t*>(memory_ + layout_.cells)[round * kThreads + threadIdx.x];
  }

  __device__ void start() {
    const int row_numbers = layout_.product.row_bytes / int(sizeof(scalar_t));
    const int64_t first_row = int64_t(chain_.index) * division_.rows;
    scalar_t* states = reinterpret_cast<scalar_t*>(state(0));
    for (int i = threadIdx.x; i < 2 * division_.rows * row_numbers; i += kThreads) {
      const int64_t b = first_row + i / row_numbers, s = i % row_numbers;
      const bool is_there = i / row_numbers < division_.rows && b < sizes_.batch && s < sizes_.state;
      states[i] = is_there ? static_cast<const scalar_t*>(arrays_.h0)[b * sizes_.state + s] : scalar_t(0.0f);
    }
    const Cursor<scalar_t, 1> cell0(arrays_.cell0, share_, sizes_);
    for (int round = 0; round < share_.rounds; ++round)
      cell_of(round) = cell0.is_there() && is_valid(round) ? math_t(cell0(round)) : math_t(0);
    __syncthreads();
    if (chain_.exchange == Exchange::kCluster) deliveries_.start();
  }

  __device__ Inputs load(const Cursor<scalar_t, kGates>& x, int round) const {
    Inputs inputs = {};
    if (!is_valid(round)) return inputs;
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) inputs.x[gate].load(x(round, gate));
    if (arrays_.bias) {
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate)
        inputs.bias[gate].load(static_cast<const scalar_t*>(arrays_.bias)[gate * sizes_.state + share_.s]);
    }
    inputs.length = arrays_.lengths ? arrays_.lengths[share_.b + round * share_.rows_at_once] : sizes_.steps;
    return inputs;
  }

  // The recurrent part of the block's gates, as one part for each warp that shares a tile.
  __device__ void multiply(const char* state) {
    const int lane = threadIdx.x % kWarp, part = threadIdx.x / kWarp % layout_.product.split;
    math_t* const partial = reinterpret_cast<math_t*>(memory_ + layout_.partial);
    for (int row = 0; row < division_.rows; row += kGroup) {
      math_t* const sums = partial + (part * division_.rows + row + lane % 4 * 2) * layout_.partial_stride;
      auto store = [&](int tile, const math_t(&top)[2], const math_t(&bottom)[2]) {
        math_t* const place = sums + tile * kTile + lane / 4;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          place[i * layout_.partial_stride] = top[i];
          place[i * layout_.partial_stride + 8] = bottom[i];
        }
      };
      weights_.multiply_rows(
          state + row * layout_.product.row_bytes,
          [&](int i, const math_t(&top)[2], const math_t(&bottom)[2]) {
            store(weights_.tile(i), top, bottom);
          },
          store);
    }
  }

  // Computes the gates of a row, saves z, updates the cell and returns the new h.
  __device__ scalar_t compute(const Inputs& inputs, const Cursor<scalar_t, kSaved>& saved, int round,
                              int64_t t, char* old_state, math_t& cell) const {
    math_t x[kGates], r[kGates], z[kSaved];
    add_recurrent_part(r, inputs, round);
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) x[gate] = scalar_t(inputs.x[gate]);
    Cell::pre_activations(z, x, r);
#pragma unroll
    for (int i = 0; i < kSaved; ++i) {
      const scalar_t rounded = z[i];
      if (saved.is_there()) saved(round, i) = rounded;
      z[i] = rounded;  // what backward will find
    }
    const scalar_t old_h = number_of_state(old_state, round);
    if (t >= inputs.length) return old_h;
    return Cell::forward(z, math_t(old_h), cell);
  }

  // The sum of the parts of all warps that share a tile, in their order.
  __device__ void add_recurrent_part(math_t (&r)[kGates], const Inputs& inputs, int round) const {
    const math_t* place = reinterpret_cast<const math_t*>(memory_ + layout_.partial) +
                          share_.row(round) * layout_.partial_stride + share_.unit;
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) r[gate] = scalar_t(inputs.bias[gate]);
    for (int i = 0; i < layout_.product.split; ++i, place += division_.rows * layout_.partial_stride) {
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) r[gate] += place[gate * division_.units];
    }
  }

  // Sends the new states of a warp's units to the blocks of the chain, this one included. Lanes send vectors:
  // kVectors lanes have all of them, so that several blocks get theirs at once.
  class Sender {
   public:
    __device__ explicit Sender(const ForwardBlock& block) {
      const int thread = threadIdx.x - lane() + first_number(), units = block.division_.units;
      row_ = thread / units < block.share_.rows_at_once ? thread / units : block.division_.rows;
      place_ = row_ * block.layout_.product.row_bytes +
               (block.chain_.rank * units + thread % units) * int(sizeof(scalar_t));
      staged_ = reinterpret_cast<scalar_t*>(block.memory_ + block.layout_.staged) + threadIdx.x;
#pragma unroll
      for (int i = 0; i < kTargets; ++i) memories_[i] = block.deliveries_.memory_of(target(i));
    }

    // All lanes of a warp call this together.
    __device__ void send(const ForwardBlock& block, scalar_t h, int round, int64_t number) const {
      char* const next = block.state(number);
      if (block.chain_.exchange == Exchange::kNone) {
        if (block.is_valid(round)) block.number_of_state(next, round) = h;
        return;
      }
      __syncwarp();
      *staged_ = h;
      __syncwarp();
      const int rows = round * block.share_.rows_at_once;
      if (row_ + rows >= block.division_.rows) return;
      const uint4 vector = *reinterpret_cast<const uint4*>(staged_ - lane() + first_number());
      const int place = place_ + rows * block.layout_.product.row_bytes;
      if (block.chain_.exchange == Exchange::kGrid) {
        if (lane() < kVectors)
          *reinterpret_cast<uint4*>(block.state_in_global_memory(number) + place) = vector;
        return;
      }
#pragma unroll
      for (int i = 0; i < kTargets; ++i)
        if (target(i) < block.chain_.blocks)
          block.deliveries_.send(number, memories_[i], next + place, vector);
    }

   private:
    static constexpr int kVectors = kWarp * sizeof(scalar_t) / kVector;
    static constexpr int kTargets = divide_up(kBlocksOfCluster, kWarp / kVectors);

    __device__ static int lane() { return threadIdx.x % kWarp; }
    // The first number of the lane's vector, among those of the warp.
    __device__ static int first_number() { return lane() % kVectors * int(kVector / sizeof(scalar_t)); }

    // The blocks to which a lane sends.
    __device__ static int target(int i) { return lane() / kVectors + i * (kWarp / kVectors); }

    int row_, place_;  // of the lane's vector, in round 0
    uint32_t memories_[kTargets];
    scalar_t* staged_;
  };

  // Waits until the chain's state after so many steps is there.
  __device__ void receive(int64_t number) {
    if (chain_.exchange == Exchange::kNone) return __syncthreads();
    if (chain_.exchange == Exchange::kCluster) return deliveries_.wait(number);
    grid_barrier_.wait();
    copy_state(state(number), state_in_global_memory(number));
  }

  __device__ char* state_in_global_memory(int64_t number) const {
    const int64_t bytes = division_.rows * layout_.product.row_bytes;
    const int64_t chains = gridDim.x / division_.blocks, chain = blockIdx.x / division_.blocks;
    return exchange_ + (number % 2 * chains + chain) * bytes;
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

  const Forward& arrays_;
  const Sizes& sizes_;
  const Division& division_;
  const ForwardLayout layout_;
  const Chain chain_;
  GridBarrier grid_barrier_;
  const Deliveries deliveries_;
  char* const exchange_;  // in global memory
  char* const memory_;    // shared
  const Share share_;
  const Weights<Unit, kHeldTiles> weights_;
};
