// The backward pass of T steps in one launch: the gradients of z, h0 and cell0. Those of the weights are one
// product over all steps afterwards.
#pragma once

#include "../cells.h"
#include "chain.cuh"
#include "product.cuh"

// Two neighbouring rows of the batch.
template <typename math_t>
struct alignas(2 * sizeof(math_t)) TwoRows {
  math_t number[2];
};

template <typename Cell, typename Unit, int kHeldTiles>
class BackwardBlock {
  using scalar_t = typename Unit::scalar_t;
  using math_t = typename Unit::math_t;
  static constexpr int kGates = Cell::kGates, kSaved = Cell::kSaved;

 public:
  __device__ BackwardBlock(const BackwardWork& work, char* memory)
      : arrays_(work.arrays),
        sizes_(work.sizes),
        partition_(work.partition),
        layout_(work.partition, kGates, sizeof(scalar_t), sizeof(math_t), Unit::kHeld),
        chain_(work.partition, work.first_chain),
        grid_barrier_(chain_, work.arrivals),
        deliveries_(memory + layout_.deliveries, layout_.received_size(partition_) * int(sizeof(math_t))),
        memory_(memory),
        received_(received(static_cast<math_t*>(work.exchange))),
        mapping_(partition_, chain_, sizes_),
        lengths_(memory + layout_.lengths),
        weights_(layout_.tiling, memory,
                 {static_cast<const scalar_t*>(arrays_.weights), arrays_.weights_stride, sizes_.state,
                  int64_t(chain_.rank) * partition_.units, partition_.units, kGates, true}) {}

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
    Inputs inputs[kRoundsAtOnce] = {};
    load(inputs, cursors, 0, sizes_.steps == 1);
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      const bool is_last = step + 1 == sizes_.steps;
      char* const gradients = gate_gradients(step);
      const int64_t t = first + direction * step;
      Cursor<scalar_t, kSaved> to = cursors.d_z;
      for_all_rounds(mapping_.valid_rounds, [&](auto count, int round) __attribute__((always_inline)) {
        constexpr int kRounds = decltype(count)::value;
        Gates gates[kRounds];
        math_t d_h[kRounds];
        sum_d_h(d_h, round, step);
#pragma unroll
        for (int i = 0; i < kRounds; ++i) gates[i] = read(inputs[i], d_h[i], round + i);
        // As in forward: the inputs of the next step are loaded now.
        if (round + kRounds < mapping_.valid_rounds) {
          load(inputs, cursors, round + kRounds, is_last);
        } else {
          cursors.advance();
          if (!is_last) load(inputs, cursors, 0, step + 2 == sizes_.steps);
        }
#pragma unroll
        for (int i = 0; i < kRounds; ++i) compute(gates[i], t < lengths_[mapping_.row(round + i)]);
#pragma unroll
        for (int i = 0; i < kRounds; ++i) store(gates[i], to, gradients, round + i);
      });
      __syncthreads();
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
        : z(block.arrays_.z, block.mapping_, block.sizes_, first, direction),
          d_z(block.arrays_.d_z, block.mapping_, block.sizes_, first, direction),
          outputs(block.arrays_.outputs, block.mapping_, block.sizes_, first + direction, direction),
          cells(block.arrays_.cells, block.mapping_, block.sizes_, first, direction),
          grad_outputs(block.arrays_.grad_outputs, block.mapping_, block.sizes_, first, direction),
          old_cells(block.arrays_.cells, block.mapping_, block.sizes_, first + direction, direction),
          h0(block.arrays_.h0, block.mapping_, block.sizes_),
          cell0(block.arrays_.cell0, block.mapping_, block.sizes_) {}

    __device__ void advance() {
      z.advance(), d_z.advance(), outputs.advance(), cells.advance(), grad_outputs.advance();
      old_cells.advance();
    }
  };

  // What a thread needs from global memory for one row in a step. The numbers are converted where they are
  // used: a conversion here would wait for them.
  struct Inputs {
    Loaded<scalar_t> z[kSaved], old_h, old_cell, new_cell, grad_output;
  };

  // The same converted, and the gradients that a thread computes from it.
  struct Gates {
    math_t z[kSaved], old_h, old_cell, new_cell;
    math_t d_z[kSaved], d_cell, d_h;  // d_h: of the new h, then what reaches the old one past the product
  };

  // The start of what this block receives: [2][groups of rows][sources][units][kGroup].
  __device__ math_t* received(math_t* in_global_memory) const {
    if (chain_.exchange != Exchange::kGrid) return reinterpret_cast<math_t*>(memory_ + layout_.received);
    return in_global_memory + blockIdx.x * int64_t(2 * layout_.received_size(partition_));
  }

  // Where a row of the batch is among the kGroup numbers of a unit. Pairs of rows change places from unit to
  // unit, so that the threads that read the same row of different units use different banks.
  __device__ static int place_of(int row, int unit) { return (row / 2 ^ unit / 4) % 4 * 2 + row % 2; }

  // The gradients of the block's gates: [rows][row_bytes]. Two buffers take turns, because the parts of d_h
  // for this block may all have arrived while some of its warps still multiply for others.
  __device__ char* gate_gradients(int64_t step) const {
    return memory_ + layout_.d_z + step % 2 * partition_.rows * layout_.tiling.row_bytes;
  }

  // The gradient of h that does not go through the product.
  __device__ math_t& direct(int round) const {
    return reinterpret_cast<math_t*>(memory_ + layout_.direct)[round * kThreads + threadIdx.x];
  }
  __device__ math_t& d_cell(int round) const {
    return reinterpret_cast<math_t*>(memory_ + layout_.d_cells)[round * kThreads + threadIdx.x];
  }

  __device__ void start() {
    const int numbers = 2 * partition_.rows * layout_.tiling.row_bytes / int(sizeof(scalar_t));
    for (int i = threadIdx.x; i < numbers; i += kThreads)
      reinterpret_cast<scalar_t*>(gate_gradients(0))[i] = scalar_t(0.0f);
    const Cursor<scalar_t, 1> grad_h(arrays_.grad_h, mapping_, sizes_),
        grad_cell(arrays_.grad_cell, mapping_, sizes_);
    for (int round = 0; round < mapping_.rounds; ++round) {
      const bool is_valid = round < mapping_.valid_rounds;
      direct(round) = grad_h.is_there() && is_valid ? math_t(grad_h(round)) : math_t(0);
      d_cell(round) = grad_cell.is_there() && is_valid ? math_t(grad_cell(round)) : math_t(0);
    }
    lengths_.load(arrays_.lengths, sizes_, int64_t(chain_.index) * partition_.rows, partition_.rows);
    __syncthreads();
    if (chain_.exchange == Exchange::kCluster) deliveries_.start();
  }

  // Loads the inputs of the rounds from `round` on. is_last: of backward, that is, the first step of forward.
  __device__ __forceinline__ void load(Inputs (&inputs)[kRoundsAtOnce], const Cursors& cursors,
                                       int first_round, bool is_last) const {
#pragma unroll
    for (int i = 0; i < kRoundsAtOnce; ++i) {
      const int round = first_round + i;
      if (round >= mapping_.valid_rounds) continue;
#pragma unroll
      for (int k = 0; k < kSaved; ++k) inputs[i].z[k].load(cursors.z(round, k));
      inputs[i].old_h.load(is_last ? cursors.h0(round) : cursors.outputs(round));
      if (Cell::kHasCell) {
        inputs[i].old_cell.load(is_last ? cursors.cell0(round) : cursors.old_cells(round));
        inputs[i].new_cell.load(cursors.cells(round));
      }
      if (cursors.grad_outputs.is_there()) inputs[i].grad_output.load(cursors.grad_outputs(round));
    }
  }

  // The gradients of h that come from the steps that forward did later: before the first step, that of the
  // last h.
  template <int kRounds>
  __device__ __forceinline__ void sum_d_h(math_t (&sums)[kRounds], int round, int64_t step) const {
#pragma unroll
    for (int i = 0; i < kRounds; ++i) sums[i] = direct(round + i);
    if (step == 0) return;
    const int size = partition_.units * kGroup;
    const math_t* parts[kRounds];
#pragma unroll
    for (int i = 0; i < kRounds; ++i) {
      const int row = mapping_.row(round + i);
      parts[i] = received_ + step % 2 * layout_.received_size(partition_) +
                 row / kGroup * layout_.sources * size + mapping_.unit * kGroup +
                 place_of(row % kGroup, mapping_.unit);
    }
#pragma unroll 8
    for (int source = 0; source < layout_.sources; ++source)
#pragma unroll
      for (int i = 0; i < kRounds; ++i) sums[i] += parts[i][source * size];
  }

  __device__ __forceinline__ Gates read(const Inputs& inputs, math_t d_h, int round) const {
    Gates gates;
#pragma unroll
    for (int k = 0; k < kSaved; ++k) gates.z[k] = scalar_t(inputs.z[k]);
    gates.old_h = scalar_t(inputs.old_h);
    gates.old_cell = scalar_t(inputs.old_cell);
    gates.new_cell = scalar_t(inputs.new_cell);
    gates.d_h = d_h + math_t(scalar_t(inputs.grad_output));
    gates.d_cell = d_cell(round);
    return gates;
  }

  // A row past its last step passes the gradient on.
  __device__ static __forceinline__ void compute(Gates& gates, bool has_step) {
    math_t d_cell = gates.d_cell;
    const math_t d_h =
        Cell::backward(gates.d_z, gates.z, gates.old_h, gates.old_cell, gates.new_cell, gates.d_h, d_cell);
    if (has_step) {
      gates.d_h = d_h;
      gates.d_cell = d_cell;
    }
#pragma unroll
    for (int k = 0; k < kSaved; ++k) gates.d_z[k] = has_step ? gates.d_z[k] : math_t(0);
  }

  __device__ __forceinline__ void store(const Gates& gates, const Cursor<scalar_t, kSaved>& to,
                                        char* gradients, int round) const {
    direct(round) = gates.d_h;
    d_cell(round) = gates.d_cell;
    scalar_t* const row =
        reinterpret_cast<scalar_t*>(gradients + mapping_.row(round) * layout_.tiling.row_bytes) +
        mapping_.unit;
#pragma unroll
    for (int k = 0; k < kSaved; ++k) to(round, k) = gates.d_z[k];
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate)
      row[gate * partition_.units] = Unit::to_factor(scalar_t(gates.d_z[Cell::recurrent(gate)]));
  }

  // Where a lane's sums of half a tile go: to the block that owns the unit.
  struct Destination {
    uint32_t block;  // in a cluster: the block's memory, for Deliveries::send
    int place;       // among the numbers from one source; negative for padding
  };

  __device__ Destination destination(int tile, int half) const {
    const int unit_of_chain = tile * kTile + half * 8 + threadIdx.x % kWarp / 4;
    const int block = unit_of_chain / partition_.units, unit = unit_of_chain % partition_.units;
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
    const int split = layout_.tiling.split;
    const int source = chain_.rank * split + threadIdx.x / kWarp % split;
    const int size = partition_.units * kGroup;
    for (int row = 0; row < partition_.rows; row += kGroup) {
      math_t* const to = received_ + number % 2 * layout_.received_size(partition_) +
                         (row / kGroup * layout_.sources + source) * size;
      weights_.multiply_rows(
          gradients + row * layout_.tiling.row_bytes,
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
      to += (int(destination.block) - chain_.rank) * int64_t(2 * layout_.received_size(partition_));
    *reinterpret_cast<TwoRows<math_t>*>(to) = two;
  }

  // Waits until the parts of d_h from all blocks are there.
  __device__ void receive(int64_t number) {
    if (chain_.exchange == Exchange::kNone) return __syncthreads();
    if (chain_.exchange == Exchange::kCluster) return deliveries_.wait(number);
    grid_barrier_.wait();
  }

  __device__ void finish() const {
    const Cursor<scalar_t, 1> d_h0(arrays_.d_h0, mapping_, sizes_),
        d_cell0(arrays_.d_cell0, mapping_, sizes_);
    for (int round = 0; round < mapping_.valid_rounds; ++round) {
      math_t d_h[1];
      sum_d_h(d_h, round, sizes_.steps);
      d_h0(round) = d_h[0];
      if (d_cell0.is_there()) d_cell0(round) = d_cell(round);
    }
  }

  const BackwardArrays<void>& arrays_;
  const Sizes& sizes_;
  const Partition& partition_;
  const BackwardLayout layout_;
  const Chain chain_;
  GridBarrier grid_barrier_;
  const Deliveries deliveries_;
  char* const memory_;
  math_t* const received_;  // in shared memory, or in global memory if the exchange is there
  const ThreadMapping mapping_;
  const Lengths lengths_;
  const Weights<Unit, kHeldTiles> weights_;
};
