// The recurrence on a CPU. One parallel region runs all steps. The rows of a batch are independent, so
// threads divide the rows; only if there are more threads than that, they divide the units, too, and meet
// after each step.
//
// The product of a step reads the weights from a copy in the order in which it needs them, and keeps its
// sums in registers, where the gates are computed from them. Every sum has the same order whatever the
// number of threads.
#include <ATen/Dispatch.h>
#include <ATen/OpMathType.h>
#include <ATen/ops/empty.h>

#include <algorithm>

#include "../operators/operators.h"
#include "product.h"
#include "simd.h"

namespace {  // each library has its own, as in autograd.cpp

using at::Tensor;

// Threads
// -------

// Some of the rows and of the blocks of units, from the first to before the last.
struct Range {
  int64_t first_row, last_row, first_block, last_block;
};

// Threads in groups that have rows of their own. The threads of a group divide the units.
struct ThreadGroups {
  int64_t groups, threads_of_group;

  // What a thread computes.
  Range range_of(int64_t thread, int64_t rows, int64_t blocks) const {
    const int64_t group = thread / threads_of_group, member = thread % threads_of_group;
    if (group >= groups) return {};
    return {rows * group / groups, rows * (group + 1) / groups, blocks * member / threads_of_group,
            blocks * (member + 1) / threads_of_group};
  }
};

// With at least 8 rows, a thread computes longer than it waits for the weights from its caches. Threads that
// meet after each step need enough work in it: `work` is the number of multiplications for one row.
ThreadGroups group_threads(int64_t threads, int64_t rows, int64_t blocks, int64_t work) {
  constexpr int64_t kRowsOfGroup = 8, kWorkOfStep = 1 << 15;
  const int64_t groups = std::clamp<int64_t>(rows / kRowsOfGroup, 1, threads);
  const int64_t useful = divide_up(rows, groups) * work / kWorkOfStep;
  return {groups, std::clamp<int64_t>(threads / groups, 1, std::max<int64_t>(1, std::min(blocks, useful)))};
}

// What forward and backward share: sizes, the order of steps, and how long each row is.
struct Sequence {
  int64_t T, B, S;
  bool reverse;
  const int64_t* lengths;  // [B], or null
  simd::Rounding rounding;

  // The time of the step that is computed as number `step`, and whether a row is that long.
  int64_t time_of(int64_t step) const { return reverse ? T - 1 - step : step; }
  bool has(int64_t row, int64_t time) const { return !lengths || time < lengths[row]; }
};

// Forward
// -------

// math_t is the type of all arithmetic, float for half and bfloat16. A block is a vector of units; `padded`
// is the number of units in whole blocks.
template <typename Cell, typename math_t>
struct ForwardPass : Sequence {
  static constexpr int G = Cell::kGates, K = Cell::kSaved;

  ForwardArrays<math_t> arrays;
  int64_t padded;
  math_t* panel;         // [blocks][S][G][units of a block]
  math_t* states;        // [2,B,padded]: h before and after the current step
  math_t* current_cell;  // [B,padded]

  math_t* state_before(int64_t step) const { return states + step % 2 * B * padded; }

  template <int kBytes>
  ALWAYS_INLINE void fill_panel(int64_t first_block, int64_t last_block) const {
    constexpr int64_t size = kBytes / sizeof(math_t);
    for (int64_t block = first_block; block < last_block; ++block)
      for (int64_t gate = 0; gate < G; ++gate)
        for (int64_t lane = 0; lane < size; ++lane) {
          const int64_t unit = block * size + lane;
          math_t* const to = panel + (block * S * G + gate) * size + lane;
          for (int64_t k = 0; k < S; ++k)
            to[k * G * size] =
                unit < S ? arrays.weights[(gate * S + unit) * arrays.weights_stride + k] : math_t(0);
        }
  }

  // The state before the first step, of the rows and units of a range.
  template <int kBytes>
  ALWAYS_INLINE void begin(const Range& range) const {
    using V = simd::Vector<math_t, kBytes>;
    for (int64_t row = range.first_row; row < range.last_row; ++row)
      for (int64_t unit = range.first_block * V::size; unit < range.last_block * V::size; unit += V::size) {
        const int64_t count = std::min<int64_t>(V::size, S - unit), at = row * padded + unit;
        simd::store(state_before(0) + at, simd::load<V>(arrays.h0 + row * S + unit, count));
        if (Cell::kHasCell)
          simd::store(current_cell + at, simd::load<V>(arrays.cell0 + row * S + unit, count));
      }
  }

  template <int kBytes>
  ALWAYS_INLINE void end(const Range& range) const {
    using V = simd::Vector<math_t, kBytes>;
    for (int64_t row = range.first_row; row < range.last_row; ++row)
      for (int64_t unit = range.first_block * V::size; unit < range.last_block * V::size; unit += V::size) {
        const int64_t count = std::min<int64_t>(V::size, S - unit), at = row * padded + unit;
        simd::store(arrays.h + row * S + unit, simd::load<V>(state_before(T) + at), count);
        if (Cell::kHasCell)
          simd::store(arrays.cell + row * S + unit, simd::load<V>(current_cell + at), count);
      }
  }

  template <typename Registers>
  ALWAYS_INLINE void compute_step(int64_t step, const Range& range) const {
    using V = simd::Vector<math_t, Registers::kBytes>;
    const math_t* const old_h = state_before(step);
    for (int64_t block = range.first_block; block < range.last_block; ++block) {
      const int64_t unit = block * V::size;
      V start[G] = {};
      if (arrays.bias)
        for (int gate = 0; gate < G; ++gate)
          start[gate] = simd::load<V>(arrays.bias + gate * S + unit, std::min<int64_t>(V::size, S - unit));
      for_tiles<Registers::kRows>(range.first_row, range.last_row,
                                  [&](auto rows, int64_t row) __attribute__((always_inline)) {
                                    V sums[rows][G];
                                    for (int r = 0; r < rows; ++r)
                                      for (int gate = 0; gate < G; ++gate) sums[r][gate] = start[gate];
                                    add_product<rows, G, V>(sums, {old_h + row * padded, padded, 1},
                                                            panel + block * S * G * V::size, S);
                                    for (int r = 0; r < rows; ++r)
                                      compute_units(step, row + r, unit, sums[r]);
                                  });
    }
  }

  // The units of one vector in one row, from their recurrent parts.
  template <typename V>
  ALWAYS_INLINE void compute_units(int64_t step, int64_t row, int64_t unit, const V (&recurrent)[G]) const {
    const int64_t time = time_of(step), of_row = time * B + row, at = row * padded + unit;
    const int64_t count = std::min<int64_t>(V::size, S - unit);
    V of_input[G], pre_activations[K];
    for (int gate = 0; gate < G; ++gate)
      of_input[gate] = simd::load<V>(arrays.x + (of_row * G + gate) * S + unit, count);
    Cell::pre_activations(pre_activations, of_input, recurrent);
    for (int k = 0; k < K; ++k) {
      pre_activations[k] = simd::round_to(rounding, pre_activations[k]);
      if (arrays.z) simd::store(arrays.z + (of_row * K + k) * S + unit, pre_activations[k], count);
    }

    const V old_h = simd::load<V>(state_before(step) + at);
    V new_cell = Cell::kHasCell ? simd::load<V>(current_cell + at) : V(0);
    V new_h = simd::round_to(rounding, Cell::forward(pre_activations, old_h, new_cell));
    if (!has(row, time)) {  // past the end of the row
      new_h = old_h;
    } else if (Cell::kHasCell) {
      simd::store(current_cell + at, simd::round_to(rounding, new_cell));
    }
    simd::store(state_before(step + 1) + at, new_h);
    simd::store(arrays.outputs + of_row * S + unit, new_h, count);
    if (Cell::kHasCell && arrays.cells)
      simd::store(arrays.cells + of_row * S + unit, simd::load<V>(current_cell + at), count);
  }
};

template <typename Cell, typename math_t>
void run(ForwardPass<Cell, math_t> shared) {
  constexpr int G = Cell::kGates;
  const int64_t size = simd::vector_bytes() / sizeof(math_t), blocks = divide_up(shared.S, size);
  const int64_t B = shared.B, S = shared.S, T = shared.T;
  shared.padded = blocks * size;
  const auto options = at::TensorOptions(c10::CppTypeToScalarType<math_t>::value);
  const Tensor panel = at::empty({T ? shared.padded : 0, S, G}, options);
  const Tensor states = at::empty({2 + Cell::kHasCell, B, shared.padded}, options);
  shared.panel = panel.template mutable_data_ptr<math_t>();
  shared.states = states.template mutable_data_ptr<math_t>();
  shared.current_cell = shared.states + 2 * B * shared.padded;

  in_parallel(useful_threads(double(T) * B * G * S * S), [&](int64_t thread, int64_t threads) {
    const ThreadGroups groups = group_threads(threads, B, blocks, G * S * S);
    const Range range = groups.range_of(thread, B, blocks);
    simd::run([&](auto registers) __attribute__((always_inline)) {
      using Registers = decltype(registers);
      const auto pass = shared;  // a copy of its own, so that g++ sees that no store changes it
      if (T)
        pass.template fill_panel<Registers::kBytes>(blocks * thread / threads,
                                                    blocks * (thread + 1) / threads);
      pass.template begin<Registers::kBytes>(range);
      barrier();
      for (int64_t step = 0; step < T; ++step) {
        pass.template compute_step<Registers>(step, range);
        if (groups.threads_of_group > 1) barrier();
      }
      pass.template end<Registers::kBytes>(range);
    });
  });
}

// Backward
// --------

// A block is a pair of vectors of units.
template <typename Cell, typename math_t>
struct BackwardPass : Sequence {
  static constexpr int G = Cell::kGates, K = Cell::kSaved, kVectors = 2;

  BackwardArrays<math_t> arrays;
  int64_t padded;
  math_t* panel;        // [blocks][G*S][units of a block]
  math_t* d_recurrent;  // [2,B,G*S]: the gradients of the recurrent parts, in this step and the one before
  math_t* d_h;     // [B,padded]: the gradient of the state after the current step, then of that before it
  math_t* d_cell;  // [B,padded]

  math_t* d_recurrent_of(int64_t step) const { return d_recurrent + step % 2 * B * G * S; }

  template <int kBytes>
  ALWAYS_INLINE void fill_panel(int64_t first_block, int64_t last_block) const {
    constexpr int64_t size = kVectors * kBytes / sizeof(math_t);
    for (int64_t block = first_block; block < last_block; ++block)
      for (int64_t k = 0; k < G * S; ++k)
        for (int64_t lane = 0; lane < size; ++lane) {
          const int64_t unit = block * size + lane;
          panel[(block * G * S + k) * size + lane] =
              unit < S ? arrays.weights[k * arrays.weights_stride + unit] : math_t(0);
        }
  }

  // Calls function(row, unit, count, at) for each vector of units of a range, `count` of them units
  // of the cell.
  template <typename V, typename Function>
  ALWAYS_INLINE void for_vectors(const Range& range, const Function& function) const {
    const int64_t last = std::min(S, range.last_block * kVectors * V::size);
    for (int64_t row = range.first_row; row < range.last_row; ++row)
      for (int64_t unit = range.first_block * kVectors * V::size; unit < last; unit += V::size)
        function(row, unit, std::min<int64_t>(V::size, S - unit), row * padded + unit);
  }

  template <int kBytes>
  ALWAYS_INLINE void begin(const Range& range) const {
    using V = simd::Vector<math_t, kBytes>;
    for_vectors<V>(
        range, [&](int64_t row, int64_t unit, int64_t count, int64_t at) __attribute__((always_inline)) {
          simd::store(d_h + at, arrays.grad_h ? simd::load<V>(arrays.grad_h + row * S + unit, count) : V(0));
          if (Cell::kHasCell)
            simd::store(d_cell + at,
                        arrays.grad_cell ? simd::load<V>(arrays.grad_cell + row * S + unit, count) : V(0));
        });
  }

  template <int kBytes>
  ALWAYS_INLINE void end(const Range& range) const {
    using V = simd::Vector<math_t, kBytes>;
    for_vectors<V>(range,
                   [&](int64_t row, int64_t unit, int64_t count, int64_t at) __attribute__((always_inline)) {
                     simd::store(arrays.d_h0 + row * S + unit, simd::load<V>(d_h + at), count);
                     if (Cell::kHasCell)
                       simd::store(arrays.d_cell0 + row * S + unit, simd::load<V>(d_cell + at), count);
                   });
  }

  // The gradients of z in one step, and the parts of those of the state before that do not pass the product.
  template <int kBytes>
  ALWAYS_INLINE void compute_gates(int64_t step, const Range& range) const {
    using V = simd::Vector<math_t, kBytes>;
    const int64_t time = time_of(step);
    const math_t* const old_h = step ? arrays.outputs + time_of(step - 1) * B * S : arrays.h0;
    const math_t* const old_cell = step ? arrays.cells + time_of(step - 1) * B * S : arrays.cell0;
    for_vectors<V>(range,
                   [&](int64_t row, int64_t unit, int64_t count, int64_t at) __attribute__((always_inline)) {
                     const int64_t of_row = time * B + row;
                     V above = simd::load<V>(d_h + at), d_pre_activations[K] = {};
                     if (arrays.grad_outputs)
                       above += simd::load<V>(arrays.grad_outputs + of_row * S + unit, count);
                     if (has(row, time)) {
                       V pre_activations[K];
                       for (int k = 0; k < K; ++k)
                         pre_activations[k] = simd::load<V>(arrays.z + (of_row * K + k) * S + unit, count);
                       V above_cell = 0, before = 0, after = 0;
                       if (Cell::kHasCell) {
                         above_cell = simd::load<V>(d_cell + at);
                         before = simd::load<V>(old_cell + row * S + unit, count);
                         after = simd::load<V>(arrays.cells + of_row * S + unit, count);
                       }
                       above = Cell::backward(d_pre_activations, pre_activations,
                                              simd::load<V>(old_h + row * S + unit, count), before, after,
                                              above, above_cell);
                       if (Cell::kHasCell) simd::store(d_cell + at, above_cell);
                     }
                     simd::store(d_h + at, above);
                     for (int k = 0; k < K; ++k) {
                       d_pre_activations[k] = simd::round_to(rounding, d_pre_activations[k]);
                       simd::store(arrays.d_z + (of_row * K + k) * S + unit, d_pre_activations[k], count);
                     }
                     for (int gate = 0; gate < G; ++gate)
                       simd::store(d_recurrent_of(step) + (row * G + gate) * S + unit,
                                   d_pre_activations[Cell::recurrent(gate)], count);
                   });
  }

  // Adds the parts of the state's gradient that pass the product.
  template <typename Registers>
  ALWAYS_INLINE void compute_product(int64_t step, const Range& range) const {
    using V = simd::Vector<math_t, Registers::kBytes>;
    const math_t* const rows_in = d_recurrent_of(step);
    for (int64_t block = range.first_block; block < range.last_block; ++block)
      for_tiles<2 * Registers::kRows>(
          range.first_row, range.last_row, [&](auto rows, int64_t row) __attribute__((always_inline)) {
            V sums[rows][kVectors] = {};
            add_product<rows, kVectors, V>(sums, {rows_in + row * G * S, G * S, 1},
                                           panel + block * G * S * kVectors * V::size, G * S);
            for (int r = 0; r < rows; ++r)
              for (int v = 0; v < kVectors; ++v) {
                math_t* const to = d_h + (row + r) * padded + (block * kVectors + v) * V::size;
                simd::store(to, simd::load<V>(to) + sums[r][v]);
              }
          });
  }
};

template <typename Cell, typename math_t>
void run(BackwardPass<Cell, math_t> shared) {
  using Pass = BackwardPass<Cell, math_t>;
  constexpr int G = Cell::kGates;
  const int64_t size = Pass::kVectors * simd::vector_bytes() / sizeof(math_t),
                blocks = divide_up(shared.S, size);
  const int64_t B = shared.B, S = shared.S, T = shared.T;
  shared.padded = blocks * size;
  const auto options = at::TensorOptions(c10::CppTypeToScalarType<math_t>::value);
  const Tensor panel = at::empty({T ? shared.padded : 0, G, S}, options);
  const Tensor d_recurrent = at::empty({2, B, G, S}, options);
  const Tensor d_states = at::empty({1 + Cell::kHasCell, B, shared.padded}, options);
  shared.panel = panel.template mutable_data_ptr<math_t>();
  shared.d_recurrent = d_recurrent.template mutable_data_ptr<math_t>();
  shared.d_h = d_states.template mutable_data_ptr<math_t>();
  shared.d_cell = shared.d_h + B * shared.padded;

  in_parallel(useful_threads(double(T) * B * G * S * S), [&](int64_t thread, int64_t threads) {
    const ThreadGroups groups = group_threads(threads, B, blocks, G * S * S);
    const Range range = groups.range_of(thread, B, blocks);
    simd::run([&](auto registers) __attribute__((always_inline)) {
      using Registers = decltype(registers);
      const auto pass = shared;  // a copy of its own, so that g++ sees that no store changes it
      if (T)
        pass.template fill_panel<Registers::kBytes>(blocks * thread / threads,
                                                    blocks * (thread + 1) / threads);
      pass.template begin<Registers::kBytes>(range);
      barrier();
      for (int64_t step = T - 1; step >= 0; --step) {
        pass.template compute_gates<Registers::kBytes>(step, range);
        if (groups.threads_of_group > 1) barrier();
        pass.template compute_product<Registers>(step, range);
      }
      pass.template end<Registers::kBytes>(range);
    });
  });
}

// The operators
// -------------

void check_rung(std::string_view rung) {
  TORCH_CHECK(rung.empty() || rung == "cpu", "lltm: rung is '", rung,
              "', but tensors on a CPU have only 'cpu'");
}

void check_values(const OptionalTensor& lengths, int64_t T) {
  if (!lengths) return;
  const Tensor values = lengths->contiguous();
  for (int64_t row = 0; row < values.size(0); ++row) {
    const int64_t length = values.const_data_ptr<int64_t>()[row];
    TORCH_CHECK(length >= 0 && length <= T, "lltm: lengths has ", length, " for row ", row,
                ", but the sequence has ", T, " steps");
  }
}

simd::Rounding rounding_of(at::ScalarType dtype) {
  if (dtype == at::kHalf) return simd::Rounding::kHalf;
  if (dtype == at::kBFloat16) return simd::Rounding::kBfloat16;
  return simd::Rounding::kNone;
}

ForwardResults recurrence(const ForwardArguments& given) {
  check_recurrence(given);
  check_rung(given.rung);
  const int64_t T = given.x.size(0), B = given.h0.size(0), S = given.h0.size(1);
  check_values(given.lengths, T);
  const at::ScalarType dtype = given.x.scalar_type(), math = at::toOpMathType(dtype);
  const ForwardArguments prepared = prepare(given, math);
  const ForwardResults made = allocate(prepared);
  with_cell(given.cell, [&](auto policy) {
    AT_DISPATCH_FLOATING_TYPES(math, "lltm_recurrence", [&] {
      ForwardPass<decltype(policy), scalar_t> pass = {};
      pass.arrays = arrays_of<scalar_t>(prepared, made);
      static_cast<Sequence&>(pass) = {T, B, S, given.reverse, pass.arrays.lengths, rounding_of(dtype)};
      run(pass);
    });
  });
  return {made.outputs.to(dtype), made.h.to(dtype), made.cell.to(dtype), made.cells.to(dtype),
          made.z.to(dtype)};
}

BackwardResults recurrence_backward(const BackwardArguments& given) {
  check_recurrence_backward(given);
  check_rung(given.rung);
  const int64_t T = given.z.size(0), B = given.h0.size(0), S = given.h0.size(1);
  check_values(given.lengths, T);
  const at::ScalarType dtype = given.z.scalar_type(), math = at::toOpMathType(dtype);
  const BackwardArguments prepared = prepare(given, math);
  const BackwardResults made = allocate(prepared);
  with_cell(given.cell, [&](auto policy) {
    AT_DISPATCH_FLOATING_TYPES(math, "lltm_recurrence_backward", [&] {
      BackwardPass<decltype(policy), scalar_t> pass = {};
      pass.arrays = arrays_of<scalar_t>(prepared, made);
      static_cast<Sequence&>(pass) = {T, B, S, given.reverse, pass.arrays.lengths, rounding_of(dtype)};
      run(pass);
    });
  });
  return {made.d_z.to(dtype), made.d_h0.to(dtype), made.d_cell0.to(dtype)};
}

// There is one rung for a CPU.
std::tuple<std::string, std::string> choose_rung(const Tensor&, std::string_view cell, int64_t, int64_t,
                                                 int64_t, bool) {
  constants_of(cell);  // refuses a name that no cell has
  return {"cpu", "the tensors are on a CPU, for which there is one loop in C++"};
}

EXPAND_TORCH_LIBRARY_IMPL(LLTM_NAMESPACE, CPU, m) {
  m.impl("recurrence", as_recurrence<&recurrence>());
  m.impl("recurrence_backward", as_recurrence_backward<&recurrence_backward>());
  m.impl("choose_rung", &choose_rung);
}

}  // namespace
