// Stands for torch's header of this name: the same names, with bounds checks in kernels.
#pragma once

#include <c10/macros/Macros.h>
#include <c10/util/ArrayRef.h>
#include <c10/util/Deprecated.h>
#include <c10/util/Exception.h>
#include <c10/util/irange.h>

#include "emulator/accessors.h"

namespace at {

template <typename T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
template <typename T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};

#define EMULATOR_ACCESSOR(name)                                                                \
  template <typename T, std::size_t N, template <typename> class PtrTraits = DefaultPtrTraits, \
            typename index_t = std::int64_t>                                                   \
  using name = ::emulator::name<T, N, PtrTraits, index_t>;
EMULATOR_ACCESSOR(TensorAccessorBase)
EMULATOR_ACCESSOR(TensorAccessor)
EMULATOR_ACCESSOR(GenericPackedTensorAccessorBase)
EMULATOR_ACCESSOR(GenericPackedTensorAccessor)
#undef EMULATOR_ACCESSOR

// Older names.
template <typename T, std::size_t N, template <typename> class PtrTraits = DefaultPtrTraits,
          typename index_t = std::int64_t>
using PackedTensorAccessor = GenericPackedTensorAccessor<T, N, PtrTraits, index_t>;
template <typename T, std::size_t N, template <typename> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, N, PtrTraits, std::int32_t>;
template <typename T, std::size_t N, template <typename> class PtrTraits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, N, PtrTraits, std::int64_t>;

}  // namespace at
