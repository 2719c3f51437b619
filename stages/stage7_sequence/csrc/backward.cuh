// The backward pass of T steps in one launch: the gradients of z, h0 and cell0. Those of the weights are one
// product over all steps afterwards.
#pragma once

#include "cells.h"
#include "chain.cuh"
#include "product.cuh"
#include "work.h"

// Two neighbouring rows of the batch.
template <typename math_t>
struct alignas(2 * sizeof(math_t)) TwoRows {
  math_t number[2];
};

template <typename Cell, typename Unit, int kHeldTiles>
class BackwardBlock {
  using scalar_t = typename Unit::Scalar;
  using math_t = typename Unit::Math;
  static constexpr int kGates = Cell::kGates, kSaved = Cell::kSaved;

 public:
  __device__ static BackwardLayout layout(const Division& division) {
    return BackwardLayout(division, kGates, sizeof(scalar_t), sizeof(math_t), Unit::kHeld);
  }

  __device__ BackwardBlock(const BackwardWork& work, char* memory)
      : work_(work),
        division_(work.division),
        layout_(layout(work.division)),
        chain_(work.division, work.first_chain),
        grid_barrier_(chain_, work.arrivals),
        deliveries_(memory + layout_.arrivals, layout_.received_size(division_) * int(sizeof(math_t))),
        d_z_(memory + layout_.d_z),
        received_(received(memory + layout_.received)),
        direct_(reinterpret_cast<math_t*>(memory + layout_.direct)),
        d_cells_(reinterpret_cast<math_t*>(memory + layout_.d_cells)),
        weights_(layout_.product, memory,
                 {static_cast<const scalar_t*>(work.arrays.weights), work.arrays.weights_stride,
                  work.sizes.state, int64_t(chain_.rank) * division_.units, division_.units, kGates, true}),
        first_pair_(threadIdx.x, division_, chain_, work.sizes),
        one_by_units_(1.0f / division_.units) {}

  __device__ void run() {
    start();
    Inputs inputs = load(first_pair_, 0);
    for (int64_t step = 0; step < work_.sizes.steps; ++step) {
      for (int i = threadIdx.x; i < division_.rows * division_.units; i += kThreads) {
        const bool is_first = i == threadIdx.x;
        const Pair pair = is_first ? first_pair_ : Pair(i, division_, chain_, work_.sizes);
        compute(pair, is_first ? inputs : load(pair, step), step);
      }
      __syncthreads();
      if (step + 1 < work_.sizes.steps) inputs = load(first_pair_, step + 1);
      multiply_and_send(d_z(step), step + 1);
      receive(step + 1);
    }
    finish();
    if (chain_.exchange == Exchange::kCluster) deliveries_.end();
  }

 private:
  // What a pair needs from global memory in a step. The numbers are converted where they are used: a
  // conversion here would wait for them.
  struct Inputs {
    scalar_t z[kSaved], old_h, old_cell, new_cell, grad_output;
    int64_t length;
  };

  // Backward goes through the steps from the last one of forward to the first.
  __device__ int64_t time(int64_t step) const {
    return work_.arrays.reverse ? step : work_.sizes.steps - 1 - step;
  }

  // The start of what this block receives: [2][groups of rows][sources][units][kGroup].
  __device__ math_t* received(char* shared) const {
    if (chain_.exchange != Exchange::kGrid) return reinterpret_cast<math_t*>(shared);
    return static_cast<math_t*>(work_.exchange) + blockIdx.x * int64_t(2 * layout_.received_size(division_));
  }

  // Where a row of the batch is among the kGroup numbers of a unit. Pairs of rows change places from unit to
  // unit, so that the threads that read the same row of different units use different banks.
  __device__ static int place_of(int row, int unit) { return (row / 2 ^ unit / 4) % 4 * 2 + row % 2; }

  // The gradients of the block's gates: [rows][row_bytes]. Two buffers take turns, because the parts of d_h for this
  // block may all have arrived while some of its warps still multiply for others.
  __device__ char* d_z(int64_t step) const {
    return d_z_ + step % 2 * division_.rows * layout_.product.row_bytes;
  }

  __device__ void start() {
    const int numbers = 2 * division_.rows * layout_.product.row_bytes / sizeof(scalar_t);
    for (int i = threadIdx.x; i < numbers; i += kThreads)
      reinterpret_cast<scalar_t*>(d_z(0))[i] = scalar_t(0.0f);
    for (int i = threadIdx.x; i < division_.rows * division_.units; i += kThreads) {
      const Pair pair(i, division_, chain_, work_.sizes);
      direct_[i] = optional(work_.arrays.grad_h, pair);
      d_cells_[i] = Cell::kHasCell ? optional(work_.arrays.grad_cell, pair) : math_t(0);
    }
    __syncthreads();
    if (chain_.exchange == Exchange::kCluster) deliveries_.start();
  }

  // A number of an array [B,S], or zero.
  __device__ math_t optional(const void* array, const Pair& pair) const {
    if (!array || !pair.is_valid) return 0;
    return static_cast<const scalar_t*>(array)[pair.b * work_.sizes.state + pair.s];
  }

  __device__ Inputs load(const Pair& pair, int64_t step) const {
    Inputs inputs = {};
    if (!pair.is_valid) return inputs;
    const Backward& arrays = work_.arrays;
    const auto& [T, B, S] = work_.sizes;
    const int64_t t = time(step), at = t * B * S + pair.of_bs;
    const int64_t before = at + (arrays.reverse ? B * S : -B * S);
    const bool is_first = step + 1 == T;  // in forward
    auto number = [](const void* array, int64_t i) { return static_cast<const scalar_t*>(array)[i]; };
    const int64_t of_z = t * B * kSaved * S + pair.of_numbers(kSaved, work_.sizes);
#pragma unroll
    for (int i = 0; i < kSaved; ++i) inputs.z[i] = number(arrays.z, of_z + i * S);
    inputs.old_h = is_first ? number(arrays.h0, pair.of_bs) : number(arrays.outputs, before);
    if (Cell::kHasCell) {
      inputs.old_cell = is_first ? number(arrays.cell0, pair.of_bs) : number(arrays.cells, before);
      inputs.new_cell = number(arrays.cells, at);
    }
    if (arrays.grad_outputs) inputs.grad_output = number(arrays.grad_outputs, at);
    inputs.length = arrays.lengths ? arrays.lengths[pair.b] : T;
    return inputs;
  }

  // The gradient of h that comes from the steps that forward did later: before the first step, that of the
  // last h.
  __device__ math_t d_h(const Pair& pair, int64_t step) const {
    math_t sum = direct_[pair.index];
    if (step == 0) return sum;
    const int size = division_.units * kGroup;
    const math_t* part = received_ + step % 2 * layout_.received_size(division_) +
                         pair.row / kGroup * layout_.sources * size + pair.unit * kGroup +
                         place_of(pair.row % kGroup, pair.unit);
#pragma unroll 8
    for (int source = 0; source < layout_.sources; ++source) sum += part[source * size];
    return sum;
  }

  __device__ void compute(const Pair& pair, const Inputs& inputs, int64_t step) {
    if (!pair.is_valid) return;
    const auto& [T, B, S] = work_.sizes;
    const int64_t t = time(step);
    const math_t d_new_h = d_h(pair, step) + math_t(inputs.grad_output);
    math_t z[kSaved], d_z[kSaved] = {}, direct = d_new_h;
#pragma unroll
    for (int i = 0; i < kSaved; ++i) z[i] = inputs.z[i];
    if (t < inputs.length)
      direct = Cell::backward(d_z, z, math_t(inputs.old_h), math_t(inputs.old_cell), math_t(inputs.new_cell),
                              d_new_h, d_cells_[pair.index]);
    direct_[pair.index] = direct;
    scalar_t* const to =
        static_cast<scalar_t*>(work_.arrays.d_z) + t * B * kSaved * S + pair.of_numbers(kSaved, work_.sizes);
#pragma unroll
    for (int i = 0; i < kSaved; ++i) to[i * S] = d_z[i];
    scalar_t* const row = reinterpret_cast<scalar_t*>(d_z(step) + pair.row * layout_.product.row_bytes);
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate)
      row[gate * division_.units + pair.unit] = d_z[Cell::recurrent(gate)];
  }

  // This block's part of d_h of all units: each number goes to the block that owns the unit.
  __device__ void multiply_and_send(const char* d_z, int64_t number) {
    const int lane = threadIdx.x % kWarp, split = layout_.product.split;
    const int source = chain_.rank * split + threadIdx.x / kWarp % split;
    const int size = division_.units * kGroup;
    for (int row = 0; row < division_.rows; row += kGroup) {
      const int64_t at = number % 2 * layout_.received_size(division_) +
                         (row / kGroup * layout_.sources + source) * int64_t(size);
      weights_.multiply_rows(d_z + row * layout_.product.row_bytes,
                             [&](int tile, const math_t(&top)[2], const math_t(&bottom)[2]) {
                               const int unit = tile * kTile + lane / 4;
                               send(number, unit, at, lane % 4 * 2, top);
                               send(number, unit + 8, at, lane % 4 * 2, bottom);
                             });
    }
  }

  __device__ __forceinline__ void send(int64_t number, int unit_of_chain, int64_t at, int row,
                                       const math_t (&sums)[2]) const {
    // A division of small whole numbers by way of float, which is exact here and takes fewer instructions.
    const int block = int((unit_of_chain + 0.5f) * one_by_units_);
    const int unit = unit_of_chain - block * division_.units;
    if (block >= chain_.blocks) return;  // padding of the last tile
    math_t* to = received_ + at + unit * kGroup + place_of(row, unit);
    const TwoRows<math_t> two{sums[0], sums[1]};
    if (chain_.exchange == Exchange::kCluster) return deliveries_.send(number, block, to, two);
    if (chain_.exchange == Exchange::kGrid)
      to += (block - chain_.rank) * int64_t(2 * layout_.received_size(division_));
    *reinterpret_cast<TwoRows<math_t>*>(to) = two;
  }

  // Waits until the parts of d_h from all blocks are there.
  __device__ void receive(int64_t number) {
    if (chain_.exchange == Exchange::kNone) return __syncthreads();
    if (chain_.exchange == Exchange::kCluster) return deliveries_.wait(number);
    grid_barrier_.wait();
  }

  __device__ void finish() {
    const Sizes& sizes = work_.sizes;
    for (int i = threadIdx.x; i < division_.rows * division_.units; i += kThreads) {
      const Pair pair(i, division_, chain_, sizes);
      if (!pair.is_valid) continue;
      const int64_t at = pair.b * sizes.state + pair.s;
      static_cast<scalar_t*>(work_.arrays.d_h0)[at] = d_h(pair, sizes.steps);
      if (Cell::kHasCell) static_cast<scalar_t*>(work_.arrays.d_cell0)[at] = d_cells_[i];
    }
  }

  const BackwardWork& work_;
  const Division division_;
  const BackwardLayout layout_;
  const Chain chain_;
  GridBarrier grid_barrier_;
  const Deliveries deliveries_;
  char* const d_z_;  // [2][rows][row_bytes]
  math_t* const received_;
  math_t* const direct_;   // [rows][units]
  math_t* const d_cells_;  // [rows][units]
  const Weights<Unit, kHeldTiles> weights_;
  const Pair first_pair_;
  const float one_by_units_;
};
