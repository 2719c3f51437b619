// CUDA's vector types with the alignment that its guide lists (four of eight bytes align to 16), and dim3.
#pragma once

#include <initializer_list>
#include <type_traits>

#include "emulator/qualifiers.h"

// A vector that is loaded or stored as a whole is one access of all its bytes. g++ would store the parts of a
// value that was just made, one by one, so such a value is first given an address. The types stay aggregates,
// trivially copyable, and members of unions: for C++, these two are not copy assignments.
#define EMULATOR_ASSIGNMENTS(type, scalar, ...)                                                \
  constexpr type& operator=(const type&) = default;                                            \
  template <typename Same>                                                                     \
  requires std::is_same_v<Same, type> __forceinline__ constexpr type& operator=(Same&& made) { \
    return *this = static_cast<const type&>(made);                                             \
  }                                                                                            \
  __forceinline__ constexpr type& operator=(std::initializer_list<scalar> values) {            \
    type made{};                                                                               \
    scalar* parts[] = {__VA_ARGS__};                                                           \
    int i = 0;                                                                                 \
    for (scalar value : values) *parts[i++] = value;                                           \
    return *this = static_cast<const type&>(made);                                             \
  }

#define EMULATOR_VECTOR_TYPES(name, scalar, align2, align4)                            \
  struct name##1 {                                                                     \
    scalar x;                                                                          \
    EMULATOR_ASSIGNMENTS(name##1, scalar, &made.x)                                     \
  };                                                                                   \
  struct alignas(align2) name##2 {                                                     \
    scalar x, y;                                                                       \
    EMULATOR_ASSIGNMENTS(name##2, scalar, &made.x, &made.y)                            \
  };                                                                                   \
  struct name##3 {                                                                     \
    scalar x, y, z;                                                                    \
    EMULATOR_ASSIGNMENTS(name##3, scalar, &made.x, &made.y, &made.z)                   \
  };                                                                                   \
  struct alignas(align4) name##4 {                                                     \
    scalar x, y, z, w;                                                                 \
    EMULATOR_ASSIGNMENTS(name##4, scalar, &made.x, &made.y, &made.z, &made.w)          \
  };                                                                                   \
  constexpr name##1 make_##name##1(scalar x) { return {x}; }                           \
  constexpr name##2 make_##name##2(scalar x, scalar y) { return {x, y}; }              \
  constexpr name##3 make_##name##3(scalar x, scalar y, scalar z) { return {x, y, z}; } \
  constexpr name##4 make_##name##4(scalar x, scalar y, scalar z, scalar w) { return {x, y, z, w}; }

EMULATOR_VECTOR_TYPES(char, signed char, 2, 4)
EMULATOR_VECTOR_TYPES(uchar, unsigned char, 2, 4)
EMULATOR_VECTOR_TYPES(short, short, 4, 8)
EMULATOR_VECTOR_TYPES(ushort, unsigned short, 4, 8)
EMULATOR_VECTOR_TYPES(int, int, 8, 16)
EMULATOR_VECTOR_TYPES(uint, unsigned int, 8, 16)
EMULATOR_VECTOR_TYPES(long, long, 16, 16)
EMULATOR_VECTOR_TYPES(ulong, unsigned long, 16, 16)
EMULATOR_VECTOR_TYPES(longlong, long long, 16, 16)
EMULATOR_VECTOR_TYPES(ulonglong, unsigned long long, 16, 16)
EMULATOR_VECTOR_TYPES(float, float, 8, 16)
EMULATOR_VECTOR_TYPES(double, double, 16, 16)

// CUDA 13 also has the large vectors with the alignment in their names.
#define EMULATOR_ALIGNED_VECTOR(name, scalar, align)                                             \
  struct alignas(align) name##_##align##a {                                                      \
    scalar x, y, z, w;                                                                           \
    EMULATOR_ASSIGNMENTS(name##_##align##a, scalar, &made.x, &made.y, &made.z, &made.w)          \
  };                                                                                             \
  constexpr name##_##align##a make_##name##_##align##a(scalar x, scalar y, scalar z, scalar w) { \
    return {x, y, z, w};                                                                         \
  }
#define EMULATOR_ALIGNED_VECTORS(name, scalar) \
  EMULATOR_ALIGNED_VECTOR(name, scalar, 16) EMULATOR_ALIGNED_VECTOR(name, scalar, 32)

EMULATOR_ALIGNED_VECTORS(long4, long)
EMULATOR_ALIGNED_VECTORS(ulong4, unsigned long)
EMULATOR_ALIGNED_VECTORS(longlong4, long long)
EMULATOR_ALIGNED_VECTORS(ulonglong4, unsigned long long)
EMULATOR_ALIGNED_VECTORS(double4, double)

#undef EMULATOR_ALIGNED_VECTORS
#undef EMULATOR_ALIGNED_VECTOR
#undef EMULATOR_VECTOR_TYPES

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int x = 1, unsigned int y = 1, unsigned int z = 1) : x(x), y(y), z(z) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return {x, y, z}; }
};

// Constant for the code of one thread, and so declared: a compiler may keep them over a barrier.
EMULATOR_BEGIN
extern EMULATOR_OF_CORE const uint3 threadIdx, blockIdx;
extern const dim3 blockDim, gridDim;
extern const int warpSize;
EMULATOR_END
