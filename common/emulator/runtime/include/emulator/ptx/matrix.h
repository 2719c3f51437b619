// PTX's instructions for tensor cores: mma, and ldmatrix and stmatrix, which move matrices of 8 x 8 elements.
#pragma once

#include "emulator/matrix.h"
#include "emulator/ptx/memory.h"
#include "emulator/warp_wide.h"

EMULATOR_BEGIN
namespace emulator::ptx {

constexpr int size_of(Element element) {
  switch (element) {
    case Element::f64:
      return 8;
    case Element::f16:
    case Element::bf16:
      return 2;
    case Element::s8:
    case Element::u8:
    case Element::e4m3:
    case Element::e5m2:
      return 1;
    default:
      return 4;
  }
}

// The registers of one operand. Those of 32 bits are full of elements, which are adjacent in a row.
template <Element element, bool is_accumulator, typename Register, std::size_t count>
MatrixPart part_of(const Register (&registers)[count]) {
  constexpr int elements = int(count * sizeof(Register)) / size_of(element),
                group = is_accumulator ? 2 : std::max(4 / size_of(element), 1);
  return {element, elements, group, const_cast<Register*>(registers)};
}

template <int m, int n, int k, Element d_type, Element a_type, Element b_type, Element c_type, bool saturates,
          typename D, std::size_t d_count, typename A, std::size_t a_count, std::size_t b_count,
          std::size_t c_count>
void mma(D (&d)[d_count], const A (&a)[a_count], const A (&b)[b_count], const D (&c)[c_count],
         EMULATOR_HERE) {
  static_assert(int(a_count * sizeof(A)) * 32 == m * k * size_of(a_type),
                "mma has another number of registers for a");
  static_assert(int(b_count * sizeof(A)) * 32 == n * k * size_of(b_type),
                "mma has another number of registers for b");
  static_assert(int(c_count * sizeof(D)) * 32 == m * n * size_of(c_type),
                "mma has another number of registers for c");
  static_assert(int(d_count * sizeof(D)) * 32 == m * n * size_of(d_type),
                "mma has another number of registers for d");
  multiply_matrices({m, n, k, part_of<a_type, false>(a), part_of<b_type, false>(b), part_of<c_type, true>(c),
                     part_of<d_type, true>(d), saturates},
                    Operation::mma, where);
}

// ---- matrices of 8 rows of 16 bytes

// Lane `8 * i + r` has row r of matrix i, and after the exchange each lane has, of each matrix, two elements
// that are adjacent in row lane / 4, or in column lane / 4 if `is_transposed`.
struct SmallMatrices {
  int count;
  bool is_transposed;
  Vector<std::uint32_t, 4> row;
  std::uint32_t parts[4];
};
void distribute_rows(SmallMatrices& own, Operation operation, Position where);
void collect_rows(SmallMatrices& own, Operation operation, Position where);

// The lanes whose rows are used: the first eight for one matrix.
template <int count, bool is_transposed>
__forceinline__ void ldmatrix(const std::byte* address, std::uint32_t (&to)[count], EMULATOR_HERE) {
  SmallMatrices own{count, is_transposed, {}, {}};
  if (current_lane() < 8 * count) own.row = *reinterpret_cast<const Vector<std::uint32_t, 4>*>(address);
  distribute_rows(own, Operation::ldmatrix, where);
  for (int i = 0; i < count; i++) to[i] = own.parts[i];
}

template <int count, bool is_transposed>
__forceinline__ void stmatrix(std::byte* address, const std::uint32_t (&from)[count], EMULATOR_HERE) {
  SmallMatrices own{count, is_transposed, {}, {}};
  for (int i = 0; i < count; i++) own.parts[i] = from[i];
  collect_rows(own, Operation::stmatrix, where);
  if (current_lane() < 8 * count) *reinterpret_cast<Vector<std::uint32_t, 4>*>(address) = own.row;
}

}  // namespace emulator::ptx
EMULATOR_END
