#include "wrapped_index.h"

#include <algorithm>
#include <vector>

#include "../memory/bindings.h"
#include "../memory/shared_memory.h"
#include "../state/launch_state.h"

namespace emulator {
namespace {

constexpr long long kNumbers = 1LL << 32;  // of 32 bits
constexpr long long kNearArray = 1 << 16;  // elements in front of an array, and behind it

// An array that the kernel may index, from where its pointer points.
struct IndexedArray {
  const void* about;
  const std::byte* begin;
  std::size_t element, size;  // bytes
  std::string name, rest;     // of its description
};

IndexedArray array_of(const Allocation& allocation, const void* pointer, std::size_t element) {
  const auto* begin = static_cast<const std::byte*>(pointer);
  const std::string name = name_of(allocation);
  return {identity_of(allocation),
          begin,
          element,
          std::size_t(allocation.end() - begin),
          name,
          describe(allocation).substr(name.size())};
}

std::vector<IndexedArray> indexed_arrays(std::size_t size_of_access) {
  std::vector<IndexedArray> all;
  for (const BoundArgument& one : bound_arguments()) {
    const std::size_t element = one.argument.element ? one.argument.element : size_of_access;
    if (one.allocation && !one.argument.name.empty())
      all.push_back(array_of(*one.allocation, one.argument.pointer, element));
  }
  for (const SharedVariable& variable : running.launch->shared.variables) {
    const Arena& arena = running.thread->block->arena;
    const std::byte* part = variable.is_dynamic ? arena.dynamic : arena.bytes;
    all.push_back({reinterpret_cast<const void*>(variable.key), part + variable.offset,
                   variable.shape.element, variable.size, name_of(variable), "; " + describe(variable)});
  }
  for (const Allocation* one : all_allocations())
    if (one->space == Space::variable || one->is_static)
      all.push_back(array_of(*one, one->begin, one->scalar ? one->scalar : size_of_access));
  return all;
}

long long elements_of(const IndexedArray& array) { return (long long)(array.size / array.element); }

// By how many elements an address is behind the beginning; 0 if it is between two elements.
long long index_in(const IndexedArray& array, const std::byte* address) {
  const std::ptrdiff_t offset = address - array.begin;
  return array.element && offset % std::ptrdiff_t(array.element) == 0 ? offset / std::ptrdiff_t(array.element)
                                                                      : 0;
}

bool is_negative_as_unsigned(long long index, long long elements) {
  return index < kNumbers && index >= kNumbers - std::max(kNearArray, elements);
}

bool is_overflown_int(long long index, long long elements) {
  return index >= -kNumbers / 2 && index < -std::max(kNearArray, elements);
}

WrappedIndex found_in(const IndexedArray& array, long long index) {
  const std::string note = note_on_index(index, elements_of(array));
  return {array.about, array.name,
          "element " + std::to_string(index) + " of " + array.name + note + array.rest};
}

}  // namespace

std::string note_on_index(long long index, long long elements) {
  if (is_negative_as_unsigned(index, elements))
    return " (" + std::to_string(index - kNumbers) + " as unsigned)";
  if (is_overflown_int(index, elements)) return " (" + std::to_string(index + kNumbers) + " as int)";
  return "";
}

WrappedIndex find_negative_index(const Access& access) {
  const IndexedArray* best = nullptr;
  long long greatest = 0;  // the nearest array
  const auto all = indexed_arrays(access.size);
  for (const IndexedArray& array : all) {
    const long long index = index_in(array, access.address);
    if (!is_negative_as_unsigned(index, elements_of(array)) || index <= greatest) continue;
    best = &array;
    greatest = index;
  }
  return best ? found_in(*best, greatest) : WrappedIndex{};
}

WrappedIndex find_overflown_index(const Access& access) {
  const IndexedArray* only = nullptr;
  const auto all = indexed_arrays(access.size);
  for (const IndexedArray& array : all) {
    if (array.element != access.size ||
        !is_overflown_int(index_in(array, access.address), elements_of(array)))
      continue;
    const bool is_usual = last_allocation_of(access.pc) && last_allocation_of(access.pc) == array.about;
    if (is_usual) return found_in(array, index_in(array, access.address));
    if (only) return {};
    only = &array;
  }
  return only ? found_in(*only, index_in(*only, access.address)) : WrappedIndex{};
}

}  // namespace emulator
