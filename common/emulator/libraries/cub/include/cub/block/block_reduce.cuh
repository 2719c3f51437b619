// Stands for CUB's header of this name: the sum, or another reduction, of the values of a block's threads.
//
// The result is defined in thread 0 only. Another use of the same storage needs a barrier before it.
#pragma once

#include "emulator/cub_operators.h"

namespace cub {

enum BlockReduceAlgorithm {  // without effect: values are combined in the order of their threads
  BLOCK_REDUCE_RAKING_COMMUTATIVE_ONLY,
  BLOCK_REDUCE_RAKING,
  BLOCK_REDUCE_WARP_REDUCTIONS,
  BLOCK_REDUCE_WARP_REDUCTIONS_NONDETERMINISTIC
};

template <typename T, int threads_x, BlockReduceAlgorithm algorithm = BLOCK_REDUCE_WARP_REDUCTIONS,
          int threads_y = 1, int threads_z = 1, int architecture = 0>
class BlockReduce {
 public:
  static constexpr int kThreads = threads_x * threads_y * threads_z;
  struct TempStorage {
    T values[kThreads];
  };

  explicit BlockReduce(TempStorage& storage) : storage_(storage) {}
  BlockReduce(EMULATOR_HERE) : storage_(emulator::cub::own_storage<TempStorage>(where)) {}

  // With `valid`, only the first threads have a value.
  template <typename Operator>
  T Reduce(T value, Operator op, int valid = kThreads, EMULATOR_HERE) {
    const int rank = int(emulator::cub::thread_rank());
    if (rank < valid) storage_.values[rank] = value;
    __syncthreads(where);
    if (rank != 0) return emulator::cub::undefined<T>();
    T sum = storage_.values[0];
    for (int i = 1; i < valid && i < kThreads; i++) sum = op(sum, storage_.values[i]);
    return sum;
  }
  template <int count, typename Operator>
  T Reduce(T (&items)[count], Operator op, EMULATOR_HERE) {
    return Reduce(emulator::cub::reduce_items(items, op), op, kThreads, where);
  }
  T Sum(T value, int valid = kThreads, EMULATOR_HERE) {
    return Reduce(value, ::cuda::std::plus<>(), valid, where);
  }
  template <int count>
  T Sum(T (&items)[count], EMULATOR_HERE) {
    return Reduce(items, ::cuda::std::plus<>(), where);
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
