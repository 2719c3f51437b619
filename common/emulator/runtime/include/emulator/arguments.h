// What a launch's arguments point to, for reports that name them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <vector>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

struct Argument {
  std::string name;         // of the kernel's parameter, where the rewriter saw it
  bool is_pointer = false;  // or an accessor
  const void* pointer = nullptr;
  std::size_t element = 0;                   // bytes; 0 for void
  bool is_scalar = false;                    // an element is one number or pointer, without padding
  bool read_only = false;                    // a pointer to const
  std::vector<std::int64_t> sizes, strides;  // of an accessor; empty for a pointer
  std::vector<const void*> words;            // of a structure: what may be pointers in it
};

// Nothing lies at so small an address.
inline bool is_null(const void* address) { return reinterpret_cast<std::uintptr_t>(address) < 65536; }

// All that lies in a structure where a pointer could, numbers too small for one left out.
std::vector<const void*> words_of(const void* structure, std::size_t size, std::size_t alignment);

template <typename T>
concept AnAccessor = requires(const T& t) {
  *t.data();
  requires std::is_convertible_v<decltype(T::dimensions), int>;
  requires std::is_convertible_v<decltype(t.size(0)), std::int64_t>;
  requires std::is_convertible_v<decltype(t.stride(0)), std::int64_t>;
};

// What one argument points to.
template <typename T>
Argument argument(const T& value) {
  Argument made;
  if constexpr (std::is_pointer_v<T> && !std::is_function_v<std::remove_pointer_t<T>>) {
    using Element = std::remove_pointer_t<T>;
    made.is_pointer = true;
    made.pointer = const_cast<const void*>(static_cast<const volatile void*>(value));
    if constexpr (!std::is_void_v<Element>) made.element = sizeof(Element);
    made.is_scalar = std::is_scalar_v<Element>;
    made.read_only = std::is_const_v<Element>;
  } else if constexpr (AnAccessor<T>) {
    made.is_pointer = true;
    made.pointer = value.data();
    made.element = sizeof(*value.data());
    made.is_scalar = std::is_scalar_v<std::remove_pointer_t<decltype(value.data())>>;
    made.read_only = std::is_const_v<std::remove_pointer_t<decltype(value.data())>>;
    for (int i = 0; i < T::dimensions; i++) {
      made.sizes.push_back(std::int64_t(value.size(i)));
      made.strides.push_back(std::int64_t(value.stride(i)));
    }
  } else if constexpr (std::is_class_v<T> && !std::is_empty_v<T>) {
    made.words = words_of(&value, sizeof(T), alignof(T));
  }
  return made;
}

// Gives each argument its name from "new_h, const z, f(x, y)"; none where their number differs. `const`: the
// kernel's parameter is a pointer to const.
void name_arguments(std::vector<Argument>& arguments, const char* names);

}  // namespace emulator
EMULATOR_END
