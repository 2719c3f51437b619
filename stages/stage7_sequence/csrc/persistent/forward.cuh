// The forward pass of T steps in one launch.
#pragma once

#include "../cells.h"
#include "chain.cuh"
#include "product.cuh"

template <typename Cell, typename Unit, int kHeldTiles>
class ForwardBlock {
  using scalar_t = typename Unit::scalar_t;
  using math_t = typename Unit::math_t;
  static constexpr int kGates = Cell::kGates, kSaved = Cell::kSaved;

 public:
  __device__ ForwardBlock(const ForwardWork& work, char* memory)
      : arrays_(work.arrays),
        sizes_(work.sizes),
        partition_(work.partition),
        layout_(work.partition, kGates, sizeof(scalar_t), sizeof(math_t), Unit::kHeld),
        chain_(work.partition, work.first_chain),
        grid_barrier_(chain_, work.arrivals),
        deliveries_(memory + layout_.deliveries,
                    partition_.rows * partition_.units * partition_.blocks * int(sizeof(scalar_t))),
        exchange_(static_cast<char*>(work.exchange)),
        memory_(memory),
        mapping_(partition_, chain_, sizes_),
        lengths_(memory + layout_.lengths),
        weights_(layout_.tiling, memory,
                 {static_cast<const scalar_t*>(arrays_.weights), arrays_.weights_stride, sizes_.state,
                  int64_t(chain_.rank) * partition_.units, partition_.units, kGates, false}) {}

  __device__ void run() {
    start();
    const int64_t first = arrays_.reverse ? sizes_.steps - 1 : 0;
    const int direction = arrays_.reverse ? -1 : 1;
    Cursor<scalar_t, kGates> x(arrays_.x, mapping_, sizes_, first, direction);
    Cursor<scalar_t, kSaved> z(arrays_.z, mapping_, sizes_, first, direction);
    Cursor<scalar_t, 1> outputs(arrays_.outputs, mapping_, sizes_, first, direction);
    Cursor<scalar_t, 1> cells(arrays_.cells, mapping_, sizes_, first, direction);
    const Cursor<scalar_t, 1> last_h(arrays_.h, mapping_, sizes_), last_cell(arrays_.cell, mapping_, sizes_);
    const Sender sender(*this);

    const Bias bias = load_bias();
    Inputs inputs = {};
    load(inputs, x, 0);
    for (int64_t step = 0; step < sizes_.steps; ++step) {
      const int64_t t = first + direction * step;
      const bool is_last = step + 1 == sizes_.steps;
      multiply(state(step));
      __syncthreads();
      for_all_rounds(mapping_.rounds, [&](auto count, int round) __attribute__((always_inline)) {
        constexpr int kRounds = decltype(count)::value;
        scalar_t h[kRounds] = {};
        if (round < mapping_.valid_rounds) {
          Gates gates[kRounds];
#pragma unroll
          for (int i = 0; i < kRounds; ++i) gates[i] = read(inputs.x[i], bias, round + i);
          // The next inputs: as a load takes about as long as a step, those of the next step are loaded now.
          if (round + kRounds < mapping_.valid_rounds) {
            load(inputs, x, round + kRounds);
          } else {
            x.advance();
            if (!is_last) load(inputs, x, 0);
          }
#pragma unroll
          for (int i = 0; i < kRounds; ++i) h[i] = compute(gates[i], t < lengths_[row_of(round + i)]);
#pragma unroll
          for (int i = 0; i < kRounds; ++i) {
            if (round + i >= mapping_.valid_rounds) {
              h[i] = scalar_t(0.0f);
              continue;
            }
            own_state(round + i) = outputs(round + i) = h[i];
            cell_of(round + i) = gates[i].cell;
            if (cells.is_there()) cells(round + i) = gates[i].cell;
            if (z.is_there()) {
#pragma unroll
              for (int k = 0; k < kSaved; ++k) z(round + i, k) = gates[i].z[k];
            }
            if (is_last) last_h(round + i) = h[i];
            if (is_last && last_cell.is_there()) last_cell(round + i) = gates[i].cell;
          }
        }
        if (!is_last) sender.send(*this, h, round, step + 1);
      });
      if (!is_last) receive(step + 1);
      z.advance(), outputs.advance(), cells.advance();
    }
    if (chain_.exchange == Exchange::kCluster) deliveries_.end();
  }

 private:
  // What a thread needs from global memory for the rounds that it computes together. The numbers are
  // converted where they are used: a conversion here would wait for them.
  struct Inputs {
    Loaded<scalar_t> x[kRoundsAtOnce][kGates];
  };

  struct Bias {
    math_t of_gate[kGates];
  };

  // What a thread computes for one row of the batch in a step.
  struct Gates {
    math_t z[kSaved], cell;
    scalar_t old_h;
  };

  // The chain's state after so many steps: [rows][row_bytes].
  __device__ char* state(int64_t number) const {
    return memory_ + layout_.states + number % 2 * partition_.rows * layout_.tiling.row_bytes;
  }

  // The row of the chain. Of rounds that are computed together, a thread may have a row only in the first
  // ones. It then computes the last row, for nothing: a branch would take more time.
  __device__ int row_of(int round) const { return min_of(mapping_.row(round), partition_.rows - 1); }

  __device__ scalar_t& number_of_state(char* state, int round) const {
    return reinterpret_cast<scalar_t*>(state + mapping_.row(round) * layout_.tiling.row_bytes)[mapping_.s];
  }

  __device__ math_t& cell_of(int round) const {
    return reinterpret_cast<math_t*>(memory_ + layout_.cells)[round * kThreads + threadIdx.x];
  }

  // The thread's h. The state that is multiplied may be rounded.
  __device__ scalar_t& own_state(int round) const {
    return reinterpret_cast<scalar_t*>(memory_ + layout_.own_states)[round * kThreads + threadIdx.x];
  }

  __device__ void start() {
    const int row_numbers = layout_.tiling.row_bytes / int(sizeof(scalar_t));
    const int64_t first_row = int64_t(chain_.index) * partition_.rows;
    scalar_t* states = reinterpret_cast<scalar_t*>(state(0));
    for (int i = threadIdx.x; i < 2 * partition_.rows * row_numbers; i += kThreads) {
      const int64_t b = first_row + i / row_numbers, s = i % row_numbers;
      const bool is_there = i / row_numbers < partition_.rows && b < sizes_.batch && s < sizes_.state;
      states[i] = is_there ? Unit::to_factor(static_cast<const scalar_t*>(arrays_.h0)[b * sizes_.state + s])
                           : scalar_t(0.0f);
    }
    lengths_.load(arrays_.lengths, sizes_, first_row, partition_.rows);
    const Cursor<scalar_t, 1> h0(arrays_.h0, mapping_, sizes_), cell0(arrays_.cell0, mapping_, sizes_);
    for (int round = 0; round < mapping_.rounds; ++round) {
      const bool is_valid = round < mapping_.valid_rounds;
      own_state(round) = is_valid ? h0(round) : scalar_t(0.0f);
      cell_of(round) = cell0.is_there() && is_valid ? math_t(cell0(round)) : math_t(0);
    }
    __syncthreads();
    if (chain_.exchange == Exchange::kCluster) deliveries_.start();
  }

  __device__ Bias load_bias() const {
    Bias bias = {};
    if (!arrays_.bias || !mapping_.has_unit) return bias;
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate)
      bias.of_gate[gate] = static_cast<const scalar_t*>(arrays_.bias)[gate * sizes_.state + mapping_.s];
    return bias;
  }

  // Loads the inputs of the rounds from `round` on.
  __device__ __forceinline__ void load(Inputs& inputs, const Cursor<scalar_t, kGates>& x, int round) const {
#pragma unroll
    for (int i = 0; i < kRoundsAtOnce; ++i) {
      if (round + i >= mapping_.valid_rounds) continue;
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) inputs.x[i][gate].load(x(round + i, gate));
    }
  }

  // The recurrent part of the block's gates, as one part for each warp that shares a tile.
  __device__ void multiply(const char* state) {
    const int lane = threadIdx.x % kWarp, part = threadIdx.x / kWarp % layout_.tiling.split;
    math_t* const partial = reinterpret_cast<math_t*>(memory_ + layout_.partial);
    for (int row = 0; row < partition_.rows; row += kGroup) {
      math_t* const sums = partial + (part * partition_.rows + row + lane % 4 * 2) * layout_.partial_stride;
      auto store = [&](int tile, const math_t(&top)[2], const math_t(&bottom)[2]) {
        math_t* const place = sums + tile * kTile + lane / 4;
#pragma unroll
        for (int i = 0; i < 2; ++i) {
          place[i * layout_.partial_stride] = top[i];
          place[i * layout_.partial_stride + 8] = bottom[i];
        }
      };
      weights_.multiply_rows(
          state + row * layout_.tiling.row_bytes,
          [&](int i, const math_t(&top)[2], const math_t(&bottom)[2]) {
            store(weights_.tile(i), top, bottom);
          },
          store);
    }
  }

  // z of a row, rounded as backward will find it, with the old h and cell.
  __device__ __forceinline__ Gates read(const Loaded<scalar_t> (&inputs)[kGates], const Bias& bias,
                                        int round) const {
    Gates gates;
    math_t x[kGates], r[kGates];
    add_recurrent_part(r, bias, row_of(round));
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) x[gate] = scalar_t(inputs[gate]);
    Cell::pre_activations(gates.z, x, r);
#pragma unroll
    for (int i = 0; i < kSaved; ++i) gates.z[i] = scalar_t(gates.z[i]);
    gates.old_h = own_state(round);
    gates.cell = cell_of(round);
    return gates;
  }

  // The new h; also updates the cell. A row past its last step keeps its state.
  __device__ static __forceinline__ scalar_t compute(Gates& gates, bool has_step) {
    math_t cell = gates.cell;
    const scalar_t h = Cell::forward(gates.z, math_t(gates.old_h), cell);
    if (has_step) gates.cell = cell;
    return has_step ? h : gates.old_h;
  }

  // The sum of the parts of all warps that share a tile, in their order.
  __device__ __forceinline__ void add_recurrent_part(math_t (&r)[kGates], const Bias& bias, int row) const {
    const math_t* place = reinterpret_cast<const math_t*>(memory_ + layout_.partial) +
                          row * layout_.partial_stride + mapping_.unit;
#pragma unroll
    for (int gate = 0; gate < kGates; ++gate) r[gate] = bias.of_gate[gate];
    for (int i = 0; i < layout_.tiling.split; ++i, place += partition_.rows * layout_.partial_stride) {
#pragma unroll
      for (int gate = 0; gate < kGates; ++gate) r[gate] += place[gate * partition_.units];
    }
  }

  // Sends the new states of a warp's units to the blocks of the chain, this one included. Lanes send vectors:
  // kVectors lanes have all of them, so that several blocks get theirs at once.
  class Sender {
   public:
    __device__ explicit Sender(const ForwardBlock& block) {
      const int thread = threadIdx.x - lane() + first_number(), units = block.partition_.units;
      row_ = thread / units < block.mapping_.rows_at_once ? thread / units : block.partition_.rows;
      place_ = row_ * block.layout_.tiling.row_bytes +
               (block.chain_.rank * units + thread % units) * int(sizeof(scalar_t));
      staged_ = reinterpret_cast<scalar_t*>(block.memory_ + block.layout_.staged) + threadIdx.x;
#pragma unroll
      for (int i = 0; i < kTargets; ++i) memories_[i] = block.deliveries_.memory_of(target(i));
    }

    // Sends the states of the rounds from `round` on. All lanes of a warp call this together.
    template <int kRounds>
    __device__ __forceinline__ void send(const ForwardBlock& block, const scalar_t (&h)[kRounds], int round,
                                         int64_t number) const {
      char* const next = block.state(number);
      if (block.chain_.exchange == Exchange::kNone) {
#pragma unroll
        for (int i = 0; i < kRounds; ++i)
          if (round + i < block.mapping_.valid_rounds)
            block.number_of_state(next, round + i) = Unit::to_factor(h[i]);
        return;
      }
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kRounds; ++i) staged_[i * kThreads] = Unit::to_factor(h[i]);
      __syncwarp();
#pragma unroll
      for (int i = 0; i < kRounds; ++i) {
        const int rows = (round + i) * block.mapping_.rows_at_once;
        if (row_ + rows >= block.partition_.rows) continue;
        const uint4 vector =
            *reinterpret_cast<const uint4*>(staged_ + i * kThreads - lane() + first_number());
        send(block, vector, next, place_ + rows * block.layout_.tiling.row_bytes, number);
      }
    }

   private:
    __device__ __forceinline__ void send(const ForwardBlock& block, const uint4& vector, const char* next,
                                         int place, int64_t number) const {
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
    const int64_t bytes = partition_.rows * layout_.tiling.row_bytes;
    const int64_t chains = gridDim.x / partition_.blocks, chain = blockIdx.x / partition_.blocks;
    return exchange_ + (number % 2 * chains + chain) * bytes;
  }

  // Copies the units of all blocks, a row by each warp. Several vectors at a time, so that
  // their loads overlap.
  __device__ void copy_state(char* to, const char* from) const {
    constexpr int kAtOnce = 4;
    const int vectors = chain_.blocks * partition_.units * int(sizeof(scalar_t)) / kVector;
    for (int row = threadIdx.x / kWarp; row < partition_.rows; row += kWarps) {
      const uint4* const source = reinterpret_cast<const uint4*>(from + row * layout_.tiling.row_bytes);
      uint4* const destination = reinterpret_cast<uint4*>(to + row * layout_.tiling.row_bytes);
      for (int first = threadIdx.x % kWarp; first < vectors; first += kAtOnce * kWarp) {
        uint4 loaded[kAtOnce];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * kWarp < vectors) loaded[i] = source[first + i * kWarp];
#pragma unroll
        for (int i = 0; i < kAtOnce; ++i)
          if (first + i * kWarp < vectors) destination[first + i * kWarp] = loaded[i];
      }
    }
    __syncthreads();
  }

  const ForwardArrays<void>& arrays_;
  const Sizes& sizes_;
  const Partition& partition_;
  const ForwardLayout layout_;
  const Chain chain_;
  GridBarrier grid_barrier_;
  const Deliveries deliveries_;
  char* const exchange_;  // in global memory
  char* const memory_;    // shared
  const ThreadMapping mapping_;
  const Lengths lengths_;
  const Weights<Unit, kHeldTiles> weights_;
};
