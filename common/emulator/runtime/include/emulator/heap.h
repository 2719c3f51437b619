// What the rewriter writes in device code for the C library's copies, heap and clock, so that the checks see
// them: `memcpy(...)` becomes `::emulator::memcpy(...)`, `new T` becomes `new (::emulator::heap) T`. In
// functions that are for the host, too, they do on the host what they always do.
#pragma once

#include <cstddef>
#include <ctime>
#include <memory>
#include <new>
#include <type_traits>

#include "emulator/synchronise.h"

EMULATOR_BEGIN
namespace emulator {

void* memcpy(void* to, const void* from, std::size_t bytes);
void* memmove(void* to, const void* from, std::size_t bytes);
void* memset(void* memory, int value, std::size_t bytes);

void* malloc(std::size_t bytes, EMULATOR_HERE);
void free(void* memory, EMULATOR_HERE);

clock_t clock();  // counts like clock64

struct Heap {
  Position where;
};
inline Heap heap(EMULATOR_HERE) { return {where}; }

template <typename T>
void delete_one(T* object, EMULATOR_HERE) {
  if (!object) return;
  std::destroy_at(object);
  free(const_cast<std::remove_cv_t<T>*>(object), where);
}

template <typename T>
void delete_array(T* first, EMULATOR_HERE) {
  if (!first) return;
  auto* memory = const_cast<std::remove_cv_t<T>*>(first);
  if constexpr (!std::is_trivially_destructible_v<T>) {  // their number is stored before them
    const std::size_t number = reinterpret_cast<const std::size_t*>(memory)[-1];
    std::destroy_n(first, number);
    constexpr std::size_t room = alignof(T) > sizeof(std::size_t) ? alignof(T) : sizeof(std::size_t);
    free(reinterpret_cast<char*>(memory) - room, where);
  } else {
    free(memory, where);
  }
}

}  // namespace emulator

inline void* operator new(std::size_t bytes, emulator::Heap heap) {
  return emulator::malloc(bytes, heap.where);
}
inline void* operator new[](std::size_t bytes, emulator::Heap heap) {
  return emulator::malloc(bytes, heap.where);
}
EMULATOR_END
