// The kernels, and their instances of one type for all cells. Each type has a source of its own: they are
// compiled in parallel.
#pragma once

#include "backward.cuh"
#include "forward.cuh"
#include "kernels.h"

template <typename Cell, typename Unit>
__global__ void __launch_bounds__(kThreads, 1) forward_kernel(const __grid_constant__ ForwardWork work) {
  extern __shared__ uint4 memory[];
  ForwardBlock<Cell, Unit>(work, reinterpret_cast<char*>(memory)).run();
}

template <typename Cell, typename Unit>
__global__ void __launch_bounds__(kThreads, 1) backward_kernel(const __grid_constant__ BackwardWork work) {
  extern __shared__ uint4 memory[];
  BackwardBlock<Cell, Unit>(work, reinterpret_cast<char*>(memory)).run();
}

template <typename Cell, typename Unit>
Kernels kernels_of_cell() {
  return {reinterpret_cast<const void*>(&forward_kernel<Cell, Unit>),
          reinterpret_cast<const void*>(&backward_kernel<Cell, Unit>), sizeof(typename Unit::Scalar),
          sizeof(typename Unit::Math), Unit::kHeld};
}

template <typename Unit>
Kernels kernels_of_type(CellKind cell) {
  switch (cell) {
    case CellKind::kLltm:
      return kernels_of_cell<Lltm, Unit>();
    case CellKind::kLstm:
      return kernels_of_cell<Lstm, Unit>();
    case CellKind::kGru:
      return kernels_of_cell<Gru, Unit>();
  }
  return {};
}
