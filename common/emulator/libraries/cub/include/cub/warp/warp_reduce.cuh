// Stands for CUB's header of this name: reductions over the lanes of a warp, or of parts of it.
//
// The result is defined in the first lane only. Each warp needs a storage of its own.
#pragma once

#include "emulator/cub_lanes.h"

namespace cub {

template <typename T, int lanes = 32, int architecture = 0>
class WarpReduce {
 public:
  struct TempStorage {
    T values[lanes];
  };

  explicit WarpReduce(TempStorage& storage) : storage_(storage) {}

  template <typename Operator>
  T Reduce(T value, Operator op, int valid = lanes, EMULATOR_HERE) {
    const emulator::cub::Lanes own(lanes);
    if (int(own.rank) < valid) storage_.values[own.rank] = value;
    own.sync(where);
    T sum = value;
    if (own.rank == 0)
      for (int i = 1; i < valid && i < int(own.count); i++) sum = op(sum, storage_.values[i]);
    own.sync(where);
    return own.rank == 0 ? sum : emulator::cub::undefined<T>();
  }
  T Sum(T value, int valid = lanes, EMULATOR_HERE) {
    return Reduce(value, ::cuda::std::plus<>(), valid, where);
  }

 private:
  TempStorage& storage_;
};

}  // namespace cub
