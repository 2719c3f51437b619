// The shape of a C array, for reports that name its elements.
#pragma once

#include <cstddef>
#include <iterator>
#include <type_traits>

namespace emulator {

// Of `int tile[16][17]`: elements of 4 bytes, two dimensions, sizes 16 and 17. Of more than four dimensions
// the inner ones are part of the element.
struct ArrayShape {
  std::size_t element;
  unsigned dimensions;
  std::size_t sizes[4];
  bool is_scalar;  // an element is one number or pointer, without padding
};

template <typename T>
struct ArrayShapeOf {
  static constexpr ArrayShape value{sizeof(T), 0, {}, std::is_scalar_v<T>};
};

template <typename T, std::size_t n>
struct ArrayShapeOf<T[n]> {
  static constexpr ArrayShape of(ArrayShape inner) {
    if (inner.dimensions == std::size(inner.sizes)) return {sizeof(T), 1, {n}, false};
    for (unsigned i = inner.dimensions++; i > 0; i--) inner.sizes[i] = inner.sizes[i - 1];
    inner.sizes[0] = n;
    return inner;
  }
  static constexpr ArrayShape value = of(ArrayShapeOf<T>::value);
};

// The structure that the rewriter puts around an array to align it.
template <typename T>
requires std::is_array_v<decltype(T::value)> struct ArrayShapeOf<T> : ArrayShapeOf<decltype(T::value)> {};

}  // namespace emulator
