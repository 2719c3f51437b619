// Stands for CUB's header of this name: scans over the lanes of a warp, or of parts of it.
//
// Each warp needs a storage of its own.
#pragma once

#include "emulator/cub_lanes.h"

namespace cub {

template <typename T, int lanes = 32, int architecture = 0>
class WarpScan {
 public:
  struct TempStorage {
    T values[lanes];
  };

  explicit WarpScan(TempStorage& storage) : storage_(storage) {}

  // `all` becomes the reduction of all values, without the initial one.
  template <typename Operator>
  void InclusiveScan(T in, T& out, Operator op, T& all, EMULATOR_HERE) {
    const emulator::cub::Lanes own = share(in, where);
    T sum = storage_.values[0];
    out = sum;
    for (unsigned i = 1; i < own.count; i++) {
      sum = op(sum, storage_.values[i]);
      if (i == own.rank) out = sum;
    }
    all = sum;
    own.sync(where);
  }
  template <typename Operator>
  void InclusiveScan(T in, T& out, Operator op, EMULATOR_HERE) {
    T all;
    InclusiveScan(in, out, op, all, where);
  }
  template <typename Operator>
  void ExclusiveScan(T in, T& out, T initial, Operator op, T& all, EMULATOR_HERE) {
    const emulator::cub::Lanes own = share(in, where);
    T sum = initial;
    for (unsigned i = 0; i < own.rank; i++) sum = op(sum, storage_.values[i]);
    T rest = storage_.values[0];
    for (unsigned i = 1; i < own.count; i++) rest = op(rest, storage_.values[i]);
    own.sync(where);
    out = sum;
    all = rest;
  }
  template <typename Operator>
  void ExclusiveScan(T in, T& out, T initial, Operator op, EMULATOR_HERE) {
    T all;
    ExclusiveScan(in, out, initial, op, all, where);
  }
  void InclusiveSum(T in, T& out, EMULATOR_HERE) { InclusiveScan(in, out, ::cuda::std::plus<>(), where); }
  void InclusiveSum(T in, T& out, T& all, EMULATOR_HERE) {
    InclusiveScan(in, out, ::cuda::std::plus<>(), all, where);
  }
  void ExclusiveSum(T in, T& out, EMULATOR_HERE) {
    ExclusiveScan(in, out, T{}, ::cuda::std::plus<>(), where);
  }
  void ExclusiveSum(T in, T& out, T& all, EMULATOR_HERE) {
    ExclusiveScan(in, out, T{}, ::cuda::std::plus<>(), all, where);
  }

 private:
  emulator::cub::Lanes share(T value, emulator::Position where) {
    const emulator::cub::Lanes own(lanes);
    storage_.values[own.rank] = value;
    own.sync(where);
    return own;
  }

  TempStorage& storage_;
};

}  // namespace cub
