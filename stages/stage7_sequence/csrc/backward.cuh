// The backward pass of T steps in one launch: the gradients of z, h0 and cell0. Those of the weights are one
// product over all steps afterwards.
#pragma once

#include "cells.h"
#include "chain.cuh"
#include "product.cuh"

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
  __device__ BackwardBlock(const BackwardWork& work, char* memory)
      : arrays_(work.arrays),
        sizes_(work.sizes),
        division_(work.division),
        layout_(work.division, kGates, sizeof(scalar_t), sizeof(math_t), Unit::kHeld),
        chain_(work.division, work.first_chain),
        grid_barrier_(chain_, work.arrivals),
        deliveries_(memory + layout_.deliveries, layout_.received_size(division_) * int(sizeof(math_t))),
        memory_(memory),
        received_(received(static_cast<math_t*>(work.exchange))),
        share_(division_, chain_, sizes_),
        weights_(layout_.product, memory,
                 {static_cast<const scalar_t*>(arrays_.weights), arrays_.weights_stride, sizes_.state,
                  int64_t(chain_.rank) * division_.units, division_.units, kGates, true}) {}

  __device__ void run() {
    start();
    // Backward goes through the steps from the last one of forward to the first.
    const int64_t first = arrays_.reverse ? 0 : sizes_.steps - 1;
    const int direction = arrays_.reverse ? 1 : -1;
    Cursors cursors(*this, first, direction);
    Destinations destinations;
#pragma unroll
    for (int i = 0; i < kHeldTiles; ++i)
#pragma unroll
      for (int half = 0; half < 2; ++half) destinations[i][half] = destination(weights_.tile(i), half);
    Inputs ahead = load(cursors, 0, sizes_.steps == 1);
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      const bool is_last = step + 1 == sizes_.steps;
      char* const gradients = gate_gradients(step);
      const int64_t t = first + direction * step;
      // Round 0 is apart: its inputs are loaded a step ahead, and its indices are known to the compiler.
      if (is_valid(0)) compute(ahead, cursors.d_z, 0, t, step, gradients);
      for (int round = 1; round < share_.rounds; ++round)
        if (is_valid(round)) compute(load(cursors, round, is_last), cursors.d_z, round, t, step, gradients);
      __syncthreads();
      cursors.advance();
      if (!is_last) ahead = load(cursors, 0, step + 2 == sizes_.steps);
      multiply_and_send(gradients, step + 1, destinations);
      receive(step + 1);
    }
    finish();
    if (chain_.exchange == Exchange::kCluster) deliveries_.end();
  }

 private:
  struct Cursors {
    Cursor<scalar_t, kSaved> z, d_z;
    Cursor<scalar_t, 1> outputs, cells, grad_outputs;  // outputs: of the step before, in forward
    Cursor<scalar_t, 1> old_cells;
    Cursor<scalar_t, 1> h0, cell0;

    __device__ Cursors(const BackwardBlock& block, int64_t first, int direction)
        : z(block.arrays_.z, block.share_, block.sizes_, first, direction),
          d_z(block.arrays_.d_z, block.share_, block.sizes_, first, direction),
          outputs(block.arrays_.outputs, block.share_, block.sizes_, first + direction, direction),
          cells(block.arrays_.cells, block.share_, block.sizes_, first, direction),
          grad_outputs(block.arrays_.grad_outputs, block.share_, block.sizes_, first, direction),
          old_cells(block.arrays_.cells, block.share_, block.sizes_, first + direction, direction),
          h0(block.arrays_.h0, block.share_, block.sizes_),
          cell0(block.arrays_.cell0, block.share_, block.sizes_) {}

    __device__ void advance() {
      z.advance(), d_z.advance(), outputs.advance(), cells.advance(), grad_outputs.advance();
      old_cells.advance();
    }
  };

  // What a thread needs from global memory for one row in a step. The numbers are converted where they are
  // used: a conversion here would wait for them.
  struct Inputs {
    Loaded<scalar_t> z[kSaved], old_h, old_cell, new_cell, grad_output;
    int64_t length;
  };

  __device__ bool is_valid(int round) const { return share_.is_valid(round, division_, sizes_); }

  // The start of what this block receives: [2][groups of rows][sources][units][kGroup].
  __device__ math_t* received(math_t* in_global_memory) const {
    if (chain_.exchange != Exchange::kGrid) return reinterpret_cast<math_t*>(memory_ + layout_.received);
    return in_global_memory + blockIdx.x * int64_t(2 * layout_.received_size(division_));
  }

  // Where a row of the batch is among the kGroup numbers of a unit. Pairs of rows change places from unit to
  // unit, so that the threads that read the same row of different units use different banks.
  __device__ static int place_of(int row, int unit) { return (row / 2 ^ unit / 4) % 4 * 2 + row % 2; }

  // The gradients of the block's gates: [rows][row_bytes]. Two buffers take turns, because the parts of d_h
  // for this block may all have arrived while some of its warps still multiply for others.
  __device__ char* gate_gradients(int64_t step) const {
    return memory_ + layout_.d_z + step % 2 * division_.rows * layout_.product.row_bytes;
  }

  // The gradient of h that does not go through the product.
  __device__ math_t& direct(int round) const {
    return reinterpret_cast<math_t*>(memory_ + layout_.direct)[round * kThreads + threadIdx.x];
  }
  __device__ math_t& d_cell(int round) const {
    return reinterpret_cast<math_t*>(memory_ + layout_.d_cells)[round * kThreads + threadIdx.x];
  }

  __device__ void start() {
    const int numbers = 2 * division_.rows * layout_.product.row_bytes / int(sizeof(scalar_t));
    for (int i = threadIdx.x; i < numbers; i += kThreads)
      reinterpret_cast<scalar_t*>(gate_gradients(0))[i] = scalar_t(0.0f);
    const Cursor<scalar_t, 1> grad_h(arrays_.grad_h, share_, sizes_),
        grad_cell(arrays_.grad_cell, share_, sizes_);
    for (int round = 0; round < share_.rounds; ++round) {
      direct(round) = grad_h.is_there() && is_valid(round) ? math_t(grad_h(round)) : math_t(0);
      d_cell(round) = grad_cell.is_there() && is_valid(round) ? math_t(grad_cell(round)) : math_t(0);
    }
    __syncthreads();
    if (chain_.exchange == Exchange::kCluster) deliveries_.start();
  }

  // is_last: of backward, that is, the first step of forward.
  __device__ Inputs load(const Cursors& cursors, int round, bool is_last) const {
    Inputs inputs = {};
    if (!is_valid(round)) return inputs;
#pragma unroll
    for (int i = 0; i < kSaved; ++i) inputs.z[i].load(cursors.z(round, i));
    inputs.old_h.load(is_last ? cursors.h0(round) : cursors.outputs(round));
    if (Cell::kHasCell) {
      inputs.old_cell.load(is_last ? cursors.cell0(round) : cursors.old_cells(round));
      inputs.new_cell.load(cursors.cells(round));
    }
    if (cursors.grad_outputs.is_there()) inputs.grad_output.load(cursors.grad_outputs(round));
    inputs.length = arrays_.lengths ? arrays_.lengths[share_.b + round * share_.rows_at_once] : sizes_.steps;
    return inputs;
  }

  // The gradient of h that comes from the steps that forward did later: before the first step, that of the
  // last h.
  __device__ math_t d_h(int round, int64_t step) const {
    math_t sum = direct(round);
    if (step == 0) return sum;
    const int size = division_.units * kGroup, row = share_.row(round);
    const math_t* part = received_ + step % 2 * layout_.received_size(division_) +
                         row / kGroup * layout_.sources * size + share_.unit * kGroup +
                         place_of(row % kGroup, share_.unit);
#pragma unroll 8
    for (int source = 0; source < layout_.sources; ++source) sum += part[source * size];
    return sum;
  }

  __device__ void compute(const Inputs& inputs, const Cursor<scalar_t, kSaved>& to, int round, int64_t t,
                          int64_t step, char* gradients) const {
    const math_t d_new_h = d_h(round, step) + math_t(scalar_t(inputs.grad_output));
    math_t z[kSaved], d_z[kSaved] = {}, past_product = d_new_h;
#pragma unroll
    for (int i = 0; i < kSaved; ++i) z[i] = scalar_t(inputs.z[i]);
    if (t < inputs.length)
      past_product = Cell::backward(d_z, z, math_t(scalar_t(inputs.old_h)), math_t(scalar_t(inputs.old_cell)),
                                    math_t(scalar_t(inputs.new_cell)), d_new_h, d_cell(round));
    direct(round) = past_product;
#pragma unroll
    for (int i = 0; i < kSaved; ++i) to(round, i) = d_z[i];
    scalar_t* const row =
        reinterpret_cast<scalar_t*>(gradients + share_.row(round) * layout_.product.row_bytes) + share_.unit;
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) row[gate * division_.units] = d_z[Cell::recurrent(gate)];
  }

  // Where a lane's sums of half a tile go: to the block that owns the unit.
  struct Destination {
    uint32_t block;  // in a cluster: the block's memory, for Deliveries::send
    int place;       // among the numbers from one source; negative for padding
  };

  __device__ Destination destination(int tile, int half) const {
    const int unit_of_chain = tile * kTile + half * 8 + threadIdx.x % kWarp / 4;
    const int block = unit_of_chain / division_.units, unit = unit_of_chain % division_.units;
    if (block >= chain_.blocks) return {0, -1};
    return {chain_.exchange == Exchange::kCluster ? deliveries_.memory_of(block) : block,
            unit * kGroup + place_of(threadIdx.x % 4 * 2, unit)};
  }

  using Destinations = Destination[kHeldTiles][2];

  // This block's part of d_h of all units.
  __device__ void multiply_and_send(const char* gradients, int64_t number,
                                    const Destinations& destinations) const {
    switch (chain_.exchange) {
      case Exchange::kNone:
        return multiply_and_send<Exchange::kNone>(gradients, number, destinations);
      case Exchange::kCluster:
        return multiply_and_send<Exchange::kCluster>(gradients, number, destinations);
      case Exchange::kGrid:
        return multiply_and_send<Exchange::kGrid>(gradients, number, destinations);
    }
  }

  template <Exchange kExchange>
  __device__ __forceinline__ void multiply_and_send(const char* gradients, int64_t number,
                                                    const Destinations& destinations) const {
    const int split = layout_.product.split;
    const int source = chain_.rank * split + threadIdx.x / kWarp % split;
    const int size = division_.units * kGroup;
    for (int row = 0; row < division_.rows; row += kGroup) {
      math_t* const to = received_ + number % 2 * layout_.received_size(division_) +
                         (row / kGroup * layout_.sources + source) * size;
      weights_.multiply_rows(
          gradients + row * layout_.product.row_bytes,
          [&](int i, const math_t(&top)[2], const math_t(&bottom)[2]) {
            send<kExchange>(number, destinations[i][0], to, top);
            send<kExchange>(number, destinations[i][1], to, bottom);
          },
          [&](int tile, const math_t(&top)[2], const math_t(&bottom)[2]) {
            send<kExchange>(number, destination(tile, 0), to, top);
            send<kExchange>(number, destination(tile, 1), to, bottom);
          });
    }
  }

  template <Exchange kExchange>
  __device__ __forceinline__ void send(int64_t number, const Destination& destination, math_t* to,
                                       const math_t (&sums)[2]) const {
    if (destination.place < 0) return;
    to += destination.place;
    const TwoRows<math_t> two{sums[0], sums[1]};
    if constexpr (kExchange == Exchange::kCluster)
      return deliveries_.send(number, destination.block, to, two);
    if constexpr (kExchange == Exchange::kGrid)
      to += (int(destination.block) - chain_.rank) * int64_t(2 * layout_.received_size(division_));
    *reinterpret_cast<TwoRows<math_t>*>(to) = two;
  }

  // Waits until the parts of d_h from all blocks are there.
  __device__ void receive(int64_t number) {
    if (chain_.exchange == Exchange::kNone) return __syncthreads();
    if (chain_.exchange == Exchange::kCluster) return deliveries_.wait(number);
    grid_barrier_.wait();
  }

  __device__ void finish() const {
    const Cursor<scalar_t, 1> d_h0(arrays_.d_h0, share_, sizes_), d_cell0(arrays_.d_cell0, share_, sizes_);
    for (int round = 0; round < share_.rounds; ++round) {
      if (!is_valid(round)) continue;
      d_h0(round) = d_h(round, sizes_.steps);
      if (d_cell0.is_there()) d_cell0(round) = d_cell(round);
    }
  }

  const Backward& arrays_;
  const Sizes& sizes_;
  const Division& division_;
  const BackwardLayout layout_;
  const Chain chain_;
  GridBarrier grid_barrier_;
  const Deliveries deliveries_;
  char* const memory_;
  math_t* const received_;  // in shared memory, or in global memory if the exchange is there
  const Share share_;
  const Weights<Unit, kHeldTiles> weights_;
};
