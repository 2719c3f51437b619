// torch's own header, and the one class that it keeps for CUDA's compiler.
#pragma once

#include_next <ATen/core/TensorAccessor.h>

namespace at {
template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
}  // namespace at
