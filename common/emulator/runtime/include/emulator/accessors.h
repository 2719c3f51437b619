// torch's accessors with bounds: in a kernel, each index is compared with the size of its dimension, which
// also finds wrong indices inside the tensor's memory. Their members are those of torch's own.
#pragma once

#include <c10/util/ArrayRef.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

// Not checked, except for the element at the end; hidden, because each extension has its own.
#define EMULATOR_UNSEEN __attribute__((no_sanitize("thread"), visibility("hidden")))

namespace emulator {

// Ends the thread that runs, if it is a kernel's. `sizes` are those of the dimension and of all behind it.
__attribute__((visibility("hidden"))) void refuse_index(const void* data, std::int64_t index,
                                                        const std::int64_t* sizes, std::size_t dimensions,
                                                        const void* pc);

template <typename Index>
__attribute__((noinline, cold)) EMULATOR_UNSEEN void index_outside(const void* data, std::int64_t index,
                                                                   const Index* sizes, std::size_t dimensions,
                                                                   const void* pc) {
  std::int64_t wide[64];
  dimensions = std::min(dimensions, std::size(wide));
  for (std::size_t i = 0; i < dimensions; i++) wide[i] = sizes[i];
  refuse_index(data, index, wide, dimensions, pc);
}

template <std::size_t dimensions, typename Pointer, typename Index>
__attribute__((always_inline)) EMULATOR_UNSEEN inline Pointer step(Pointer data, const Index* sizes,
                                                                   const Index* strides, Index index,
                                                                   const void* pc) {
  if (std::uint64_t(std::int64_t(index)) >= std::uint64_t(std::int64_t(sizes[0])))
    index_outside(data, index, sizes, dimensions, pc);
  return data + strides[0] * index;
}

template <typename T, std::size_t N, template <typename> class PtrTraits, typename index_t>
class TensorAccessor;

// The result of an index: an accessor with one dimension less, or finally an element.
template <typename T, std::size_t N, template <typename> class PtrTraits, typename index_t>
struct Indexed {
  using type = TensorAccessor<T, N - 1, PtrTraits, index_t>;
  using const_type = const type;
};
template <typename T, template <typename> class PtrTraits, typename index_t>
struct Indexed<T, 1, PtrTraits, index_t> {
  using type = T&;
  using const_type = const T&;
};

#define EMULATOR_INDEXING                                                                                \
  __attribute__((noinline)) EMULATOR_UNSEEN typename Indexed<T, N, PtrTraits, index_t>::type operator[]( \
      index_t i) {                                                                                       \
    const auto at =                                                                                      \
        step<N, PtrType>(this->data_, this->sizes_, this->strides_, i, __builtin_return_address(0));     \
    if constexpr (N == 1)                                                                                \
      return *at;                                                                                        \
    else                                                                                                 \
      return {at, this->sizes_ + 1, this->strides_ + 1};                                                 \
  }                                                                                                      \
  __attribute__((noinline)) EMULATOR_UNSEEN typename Indexed<T, N, PtrTraits, index_t>::const_type       \
  operator[](index_t i) const {                                                                          \
    const auto at =                                                                                      \
        step<N, PtrType>(this->data_, this->sizes_, this->strides_, i, __builtin_return_address(0));     \
    if constexpr (N == 1)                                                                                \
      return *at;                                                                                        \
    else                                                                                                 \
      return {at, this->sizes_ + 1, this->strides_ + 1};                                                 \
  }

// Sizes and strides are stored elsewhere.
template <typename T, std::size_t N, template <typename> class PtrTraits, typename index_t>
class TensorAccessorBase {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  static constexpr int dimensions = int(N);

  TensorAccessorBase(PtrType data, const index_t* sizes, const index_t* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  c10::IntArrayRef sizes() const { return {sizes_, N}; }
  c10::IntArrayRef strides() const { return {strides_, N}; }
  index_t stride(index_t i) const { return strides_[i]; }
  index_t size(index_t i) const { return sizes_[i]; }
  PtrType data() { return data_; }
  PtrType data() const { return data_; }

 protected:
  PtrType data_;
  const index_t *sizes_, *strides_;
};

template <typename T, std::size_t N, template <typename> class PtrTraits, typename index_t>
class TensorAccessor : public TensorAccessorBase<T, N, PtrTraits, index_t> {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  using TensorAccessorBase<T, N, PtrTraits, index_t>::TensorAccessorBase;
  EMULATOR_INDEXING
};

// Sizes and strides are a part of it, so that a kernel can take it by value.
template <typename T, std::size_t N, template <typename> class PtrTraits, typename index_t>
class GenericPackedTensorAccessorBase {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  static constexpr int dimensions = int(N);

  // Also from int64_t, whatever index_t is.
  template <typename source_t, typename = std::enable_if_t<std::is_same_v<source_t, index_t> ||
                                                           std::is_same_v<source_t, std::int64_t>>>
  GenericPackedTensorAccessorBase(PtrType data, const source_t* sizes, const source_t* strides)
      : data_(data) {
    std::transform(sizes, sizes + N, sizes_, [](source_t size) { return index_t(size); });
    std::transform(strides, strides + N, strides_, [](source_t stride) { return index_t(stride); });
  }
  index_t stride(index_t i) const { return strides_[i]; }
  index_t size(index_t i) const { return sizes_[i]; }
  PtrType data() { return data_; }
  PtrType data() const { return data_; }

 protected:
  PtrType data_;
  index_t sizes_[N], strides_[N];

  void bounds_check_(index_t i) const {
    TORCH_CHECK_INDEX(0 <= i && i < index_t(N), "Index ", i,
                      " is not within bounds of a tensor of dimension ", N);
  }
};

template <typename T, std::size_t N, template <typename> class PtrTraits, typename index_t>
class GenericPackedTensorAccessor : public GenericPackedTensorAccessorBase<T, N, PtrTraits, index_t> {
 public:
  using PtrType = typename PtrTraits<T>::PtrType;
  using GenericPackedTensorAccessorBase<T, N, PtrTraits, index_t>::GenericPackedTensorAccessorBase;
  EMULATOR_INDEXING

  GenericPackedTensorAccessor transpose(index_t dim1, index_t dim2) const {
    this->bounds_check_(dim1);
    this->bounds_check_(dim2);
    GenericPackedTensorAccessor result = *this;
    std::swap(result.strides_[dim1], result.strides_[dim2]);
    std::swap(result.sizes_[dim1], result.sizes_[dim2]);
    return result;
  }
};

#undef EMULATOR_INDEXING
#undef EMULATOR_UNSEEN

}  // namespace emulator
