// Matrices whose elements are distributed over the lanes of a warp, as tensor cores multiply them.
#pragma once

#include <cstdint>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

enum class Element : std::uint8_t { f16, bf16, tf32, f32, f64, s8, u8, s32, e4m3, e5m2, u4, s4, b1 };

struct MatrixPlace {
  int row, column;
};

// The place of element `i` of a lane. Four lanes share a row; each has `group` consecutive elements of it.
// The next group of the lane is eight rows further down, and after the last row in the next columns. This is
// the layout of every mma instruction in the PTX manual. Elements past the last column repeat those in the
// first.
constexpr MatrixPlace place_in_matrix(int rows, int columns, int group, int lane, int i) {
  const int number = i / group, tiles = rows / 8;
  return {lane / 4 + 8 * (number % tiles),
          (4 * group * (number / tiles) + group * (lane % 4) + i % group) % columns};
}

// The elements of one matrix that one lane has; those of fewer than eight bits fill words, lowest bits first.
struct MatrixPart {
  Element type;
  int count, group;
  void* values;
};

// d = a * b + c. `b` is distributed like its transpose. Products of half, bfloat16 and TF32 are exact, and so
// is their sum with c, as far as double can hold it; it is rounded once, to nearest. Tensor cores cut off the
// lowest bits of some of the terms and round toward zero (Fasi, Higham, Mikaitis and Pranesh, 2021), so their
// results may differ in the last bits. Integers wrap around, or saturate at the ends of int.
struct MatrixMultiplication {
  int m, n, k;
  MatrixPart a, b, c, d;
  bool saturates;
  bool is_xor = false;  // of bits: exclusive or takes the place of the product
};

// Called by all lanes of a warp, each with its own parts.
void multiply_matrices(const MatrixMultiplication& own, Operation operation, Position where);

// All lanes of a warp must call a function that loads or stores a matrix. Reports a pointer or a distance of
// rows, in bytes, that is not a multiple of what CUDA demands.
void meet_at_matrix(const void* matrix, std::size_t row_bytes, Operation operation, Position where);

}  // namespace emulator
EMULATOR_END
