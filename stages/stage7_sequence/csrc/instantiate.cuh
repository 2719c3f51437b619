// The kernels, and their instances of one type for all cells. Each type has a source of its own: they are
// compiled in parallel. Older GPUs lack instructions that the kernels use: for them, the kernels are empty,
// and make_plan refuses to launch them.
#pragma once

#include "backward.cuh"
#include "forward.cuh"
#include "kernels.h"

template <typename Cell, typename Unit, int kHeldTiles>
__global__ void __launch_bounds__(kThreads, 1) forward_kernel(const __grid_constant__ ForwardWork work) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ uint4 memory[];
  ForwardBlock<Cell, Unit, kHeldTiles>(work, reinterpret_cast<char*>(memory)).run();
#endif
}

template <typename Cell, typename Unit, int kHeldTiles>
__global__ void __launch_bounds__(kThreads, 1) backward_kernel(const __grid_constant__ BackwardWork work) {
#if __CUDA_ARCH__ >= 800
  extern __shared__ uint4 memory[];
  BackwardBlock<Cell, Unit, kHeldTiles>(work, reinterpret_cast<char*>(memory)).run();
#endif
}

template <typename Cell, typename Unit, int kHeldTiles>
KernelPair kernels_of_cell() {
  return {reinterpret_cast<const void*>(&forward_kernel<Cell, Unit, kHeldTiles>),
          reinterpret_cast<const void*>(&backward_kernel<Cell, Unit, kHeldTiles>)};
}

template <typename Unit, int kHeldTiles>
KernelPair kernels_of_unit(CellKind cell) {
  switch (cell) {
    case CellKind::kLltm:
      return kernels_of_cell<Lltm, Unit, kHeldTiles>();
    case CellKind::kLstm:
      return kernels_of_cell<Lstm, Unit, kHeldTiles>();
    case CellKind::kGru:
      return kernels_of_cell<Gru, Unit, kHeldTiles>();
  }
  return {};
}

template <typename Unit>
Kernels kernels_of_type(CellKind cell) {
  return {{kernels_of_unit<Unit, 1>(cell), kernels_of_unit<Unit, 2>(cell), kernels_of_unit<Unit, 4>(cell)},
          sizeof(typename Unit::Scalar),
          sizeof(typename Unit::Math),
          Unit::kHeld};
}
