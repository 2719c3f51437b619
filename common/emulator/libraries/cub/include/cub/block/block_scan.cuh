// Stands for CUB's header of this name: prefix sums, or other scans, over the values of a block's threads.
#pragma once

#include "emulator/cub_operators.h"

namespace cub {

enum BlockScanAlgorithm { BLOCK_SCAN_RAKING, BLOCK_SCAN_RAKING_MEMOIZE, BLOCK_SCAN_WARP_SCANS };

template <typename T, int threads_x, BlockScanAlgorithm algorithm = BLOCK_SCAN_RAKING, int threads_y = 1,
          int threads_z = 1, int architecture = 0>
class BlockScan {
 public:
  static constexpr int kThreads = threads_x * threads_y * threads_z;
  struct TempStorage {
    T values[kThreads], all;
  };

  explicit BlockScan(TempStorage& storage) : storage_(storage) {}
  BlockScan(EMULATOR_HERE) : storage_(emulator::cub::own_storage<TempStorage>(where)) {}

  // `all` becomes the reduction of all values, without the initial one.
  template <typename Operator>
  void InclusiveScan(T in, T& out, Operator op, T& all, EMULATOR_HERE) {
    scan(in, op, where);
    out = storage_.values[emulator::cub::thread_rank()];
    all = storage_.all;
  }
  template <typename Operator>
  void InclusiveScan(T in, T& out, Operator op, EMULATOR_HERE) {
    T all;
    InclusiveScan(in, out, op, all, where);
  }
  template <typename Operator>
  void ExclusiveScan(T in, T& out, T initial, Operator op, T& all, EMULATOR_HERE) {
    scan(in, op, where);
    const unsigned rank = emulator::cub::thread_rank();
    out = rank == 0 ? initial : op(initial, storage_.values[rank - 1]);
    all = storage_.all;
  }
  template <typename Operator>
  void ExclusiveScan(T in, T& out, T initial, Operator op, EMULATOR_HERE) {
    T all;
    ExclusiveScan(in, out, initial, op, all, where);
  }

  template <int count, typename Operator>
  void InclusiveScan(T (&in)[count], T (&out)[count], Operator op, T& all, EMULATOR_HERE) {
    scan(emulator::cub::reduce_items(in, op), op, where);
    const unsigned rank = emulator::cub::thread_rank();
    T sum = rank == 0 ? in[0] : op(storage_.values[rank - 1], in[0]);
    for (int i = 0; i < count; out[i++] = sum)
      if (i > 0) sum = op(sum, in[i]);
    all = storage_.all;
  }
  template <int count, typename Operator>
  void InclusiveScan(T (&in)[count], T (&out)[count], Operator op, EMULATOR_HERE) {
    T all;
    InclusiveScan(in, out, op, all, where);
  }
  template <int count, typename Operator>
  void ExclusiveScan(T (&in)[count], T (&out)[count], T initial, Operator op, T& all, EMULATOR_HERE) {
    scan(emulator::cub::reduce_items(in, op), op, where);
    const unsigned rank = emulator::cub::thread_rank();
    T sum = rank == 0 ? initial : op(initial, storage_.values[rank - 1]);
    for (int i = 0; i < count; i++) {
      const T own = in[i];  // `out` may be `in`
      out[i] = sum;
      sum = op(sum, own);
    }
    all = storage_.all;
  }
  template <int count, typename Operator>
  void ExclusiveScan(T (&in)[count], T (&out)[count], T initial, Operator op, EMULATOR_HERE) {
    T all;
    ExclusiveScan(in, out, initial, op, all, where);
  }

  template <int count>
  void InclusiveSum(T (&in)[count], T (&out)[count], EMULATOR_HERE) {
    InclusiveScan(in, out, ::cuda::std::plus<>(), where);
  }
  void InclusiveSum(T in, T& out, EMULATOR_HERE) { InclusiveScan(in, out, ::cuda::std::plus<>(), where); }
  void InclusiveSum(T in, T& out, T& all, EMULATOR_HERE) {
    InclusiveScan(in, out, ::cuda::std::plus<>(), all, where);
  }
  template <int count>
  void InclusiveSum(T (&in)[count], T (&out)[count], T& all, EMULATOR_HERE) {
    InclusiveScan(in, out, ::cuda::std::plus<>(), all, where);
  }
  void ExclusiveSum(T in, T& out, EMULATOR_HERE) {
    ExclusiveScan(in, out, T{}, ::cuda::std::plus<>(), where);
  }
  void ExclusiveSum(T in, T& out, T& all, EMULATOR_HERE) {
    ExclusiveScan(in, out, T{}, ::cuda::std::plus<>(), all, where);
  }
  template <int count>
  void ExclusiveSum(T (&in)[count], T (&out)[count], EMULATOR_HERE) {
    ExclusiveScan(in, out, T{}, ::cuda::std::plus<>(), where);
  }
  template <int count>
  void ExclusiveSum(T (&in)[count], T (&out)[count], T& all, EMULATOR_HERE) {
    ExclusiveScan(in, out, T{}, ::cuda::std::plus<>(), all, where);
  }

 private:
  // Thread 0 scans the values of all threads.
  template <typename Operator>
  void scan(T value, Operator op, emulator::Position where) {
    const unsigned rank = emulator::cub::thread_rank();
    storage_.values[rank] = value;
    __syncthreads(where);
    if (rank == 0) {
      for (int i = 1; i < kThreads; i++) storage_.values[i] = op(storage_.values[i - 1], storage_.values[i]);
      storage_.all = storage_.values[kThreads - 1];
    }
    __syncthreads(where);
  }

  TempStorage& storage_;
};

}  // namespace cub
