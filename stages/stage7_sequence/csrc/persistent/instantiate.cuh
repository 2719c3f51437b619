// The kernels, and their instances for one cell and one type. Older GPUs lack instructions that the kernels
// use: for them, the kernels are empty, and make_plan refuses to launch them.
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
KernelPair kernel_pair() {
  return {reinterpret_cast<const void*>(&forward_kernel<Cell, Unit, kHeldTiles>),
          reinterpret_cast<const void*>(&backward_kernel<Cell, Unit, kHeldTiles>)};
}

template <Scalar>
struct UnitOf;
template <>
struct UnitOf<Scalar::kFloat> {
  using Type = FmaUnits<float>;
};
template <>
struct UnitOf<Scalar::kTf32> {
  using Type = TensorCores<float>;
};
template <>
struct UnitOf<Scalar::kHalf> {
  using Type = TensorCores<half>;
};
template <>
struct UnitOf<Scalar::kBfloat16> {
  using Type = TensorCores<__nv_bfloat16>;
};
template <>
struct UnitOf<Scalar::kDouble> {
  using Type = FmaUnits<double>;
};

template <typename Cell, Scalar kScalar>
Kernels kernels_of() {
  using Unit = typename UnitOf<kScalar>::Type;
  return {{kernel_pair<Cell, Unit, 1>(), kernel_pair<Cell, Unit, 2>(), kernel_pair<Cell, Unit, 4>()},
          Cell::kGates,
          sizeof(typename Unit::scalar_t),
          sizeof(typename Unit::math_t),
          Unit::kHeld};
}
