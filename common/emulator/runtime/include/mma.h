// Stands for CUDA's header of this name: nvcuda::wmma, matrices that a warp multiplies.
//
// Which lane has which element of a fragment is not specified by CUDA. Here it is the layout of mma
// instructions in the PTX manual, so x[i] of two accumulators of one type are the same element, but code must
// not rely on more.
#pragma once

#include <algorithm>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "emulator/matrix.h"

namespace nvcuda::wmma {

struct row_major;
struct col_major;
struct matrix_a;
struct matrix_b;
struct accumulator;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}
namespace experimental {
namespace precision {
struct u4;
struct s4;
struct b1;
}  // namespace precision
enum bmmaBitOp { bmmaBitOpXOR = 1, bmmaBitOpAND = 2 };
enum bmmaAccumulateOp { bmmaAccumulateOpPOPC = 1 };
}  // namespace experimental

}  // namespace nvcuda::wmma

namespace emulator {

namespace wmma = nvcuda::wmma;

// The type that stores elements, how many of them are in one value, the first in its lowest bits, and which
// of the tensor cores' types they are.
template <typename T>
struct ElementOf;
template <typename T, Element element, int packed = 1>
struct StoredElement {
  using Stored = T;
  static constexpr Element kElement = element;
  static constexpr int kPacked = packed;
};
// clang-format off
template <> struct ElementOf<__half> : StoredElement<__half, Element::f16> {};
template <> struct ElementOf<__nv_bfloat16> : StoredElement<__nv_bfloat16, Element::bf16> {};
template <> struct ElementOf<wmma::precision::tf32> : StoredElement<float, Element::tf32> {};
template <> struct ElementOf<float> : StoredElement<float, Element::f32> {};
template <> struct ElementOf<double> : StoredElement<double, Element::f64> {};
template <> struct ElementOf<signed char> : StoredElement<signed char, Element::s8> {};
template <> struct ElementOf<unsigned char> : StoredElement<unsigned char, Element::u8> {};
template <> struct ElementOf<int> : StoredElement<int, Element::s32> {};
template <> struct ElementOf<wmma::experimental::precision::u4> : StoredElement<unsigned, Element::u4, 8> {};
template <> struct ElementOf<wmma::experimental::precision::s4> : StoredElement<int, Element::s4, 8> {};
template <> struct ElementOf<wmma::experimental::precision::b1> : StoredElement<unsigned, Element::b1, 32> {};
// clang-format on
template <typename T>
using Stored = typename ElementOf<T>::Stored;
template <typename T>
constexpr int kPacked = ElementOf<T>::kPacked;

struct MatrixShape {
  int m, n, k;
  constexpr bool operator==(const MatrixShape& other) const {
    return m == other.m && n == other.n && k == other.k;
  }
};

template <typename T, bool is_accumulator>
constexpr bool has_wmma_shape(MatrixShape shape) {
  const bool is_usual =
      shape == MatrixShape{16, 16, 16} || shape == MatrixShape{32, 8, 16} || shape == MatrixShape{8, 32, 16};
  const Element element = ElementOf<T>::kElement;
  if (element == Element::f64) return shape == MatrixShape{8, 8, 4};
  if (element == Element::tf32) return !is_accumulator && shape == MatrixShape{16, 16, 8};
  if (element == Element::f32) return is_accumulator && (is_usual || shape == MatrixShape{16, 16, 8});
  if (element == Element::f16) return is_usual;
  const bool is_of_4_bits = shape == MatrixShape{8, 8, 32}, is_of_1_bit = shape == MatrixShape{8, 8, 128};
  if (element == Element::s32) return is_accumulator && (is_usual || is_of_4_bits || is_of_1_bit);
  if (element == Element::u4 || element == Element::s4) return !is_accumulator && is_of_4_bits;
  if (element == Element::b1) return !is_accumulator && is_of_1_bit;
  return !is_accumulator && is_usual;
}

// A stored value in which each element is the given one, of which only the lowest bits count.
template <typename T>
__forceinline__ Stored<T> repeat_element(Stored<T> value) {
  if constexpr (kPacked<T> == 1) {
    return value;
  } else {
    constexpr unsigned kMask = (1u << 32 / kPacked<T>)-1;
    return Stored<T>((unsigned(value) & kMask) * (0xffffffffu / kMask));
  }
}

}  // namespace emulator

namespace nvcuda::wmma {

template <typename Use, int m, int n, int k, typename T, typename Layout = void>
struct __attribute__((aligned(8))) fragment {
  static constexpr bool kIsAccumulator = std::is_same_v<Use, accumulator>,
                        kIsB = std::is_same_v<Use, matrix_b>;
  static_assert(emulator::has_wmma_shape<T, kIsAccumulator>({m, n, k}),
                "wmma has no fragment of this type and shape");
  static_assert(kIsAccumulator == std::is_void_v<Layout>,
                "a matrix_a or matrix_b has a layout, and only these");
  static_assert(emulator::kPacked<T> == 1 || std::is_same_v<Layout, row_major> != kIsB,
                "with u4, s4 and b1, matrix_a is row_major and matrix_b is col_major");

  // Of `b` its transpose: the shape in which its elements are distributed.
  static constexpr int kRows = kIsB ? n : m, kColumns = kIsAccumulator ? n : k;
  using element_type = T;
  using storage_element_type = emulator::Stored<T>;
  // Operands of half have 16 elements, so that a lane may have an element twice.
  static constexpr int num_elements =
      std::is_same_v<T, __half> && !kIsAccumulator ? 16 : kRows * kColumns / 32;
  static constexpr int num_storage_elements = num_elements / emulator::kPacked<T>;
  static constexpr int kGroup = std::min(num_elements, std::max(2, emulator::kPacked<T>));

  storage_element_type x[num_storage_elements];

  // ---- the emulator's own

  static emulator::MatrixPlace place(int lane, int i) {
    const auto [row, column] = emulator::place_in_matrix(kRows, kColumns, kGroup, lane, i);
    return kIsB ? emulator::MatrixPlace{column, row} : emulator::MatrixPlace{row, column};
  }
  emulator::MatrixPart part() const {
    return {emulator::ElementOf<T>::kElement, num_elements, kGroup, const_cast<storage_element_type*>(x)};
  }
};

template <typename Use, int m, int n, int k, typename T, typename Layout>
__forceinline__ void fill_fragment(fragment<Use, m, n, k, T, Layout>& f, const emulator::Stored<T>& value) {
  for (auto& x : f.x) x = emulator::repeat_element<T>(value);
}

}  // namespace nvcuda::wmma

namespace emulator {

// Where element `i` of the calling lane is in memory.
template <typename Fragment>
std::size_t offset_in_memory(int lane, int i, unsigned ldm, bool is_row_major) {
  const auto [row, column] = Fragment::place(lane, i);
  return is_row_major ? std::size_t(row) * ldm + std::size_t(column)
                      : std::size_t(column) * ldm + std::size_t(row);
}

template <typename Fragment, typename T>
__forceinline__ void load_fragment(Fragment& f, const T* p, unsigned ldm, bool is_row_major, Position where) {
  constexpr int packed = kPacked<typename Fragment::element_type>;
  meet_at_matrix(p, ldm * sizeof(T) / packed, Operation::load_matrix_sync, where);
  const int lane = int(current_lane());
  for (int i = 0; i < Fragment::num_storage_elements; i++)
    f.x[i] = p[offset_in_memory<Fragment>(lane, i * packed, ldm, is_row_major) / packed];
}

}  // namespace emulator

namespace nvcuda::wmma {

template <typename Use, int m, int n, int k, typename T, typename Layout>
requires(!std::is_same_v<Use, accumulator>) __forceinline__
    void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f,
                          const std::conditional_t<emulator::kPacked<T> == 1, emulator::Stored<T>, void>* p,
                          unsigned ldm, EMULATOR_HERE) {
  emulator::load_fragment(f, static_cast<const emulator::Stored<T>*>(p), ldm,
                          std::is_same_v<Layout, row_major>, where);
}

template <int m, int n, int k, typename T>
__forceinline__ void load_matrix_sync(fragment<accumulator, m, n, k, T>& f, const T* p, unsigned ldm,
                                      layout_t layout, EMULATOR_HERE) {
  emulator::load_fragment(f, p, ldm, layout == mem_row_major, where);
}

template <int m, int n, int k, typename T>
__forceinline__ void store_matrix_sync(T* p, const fragment<accumulator, m, n, k, T>& f, unsigned ldm,
                                       layout_t layout, EMULATOR_HERE) {
  using Fragment = fragment<accumulator, m, n, k, T>;
  emulator::meet_at_matrix(p, ldm * sizeof(T), emulator::Operation::store_matrix_sync, where);
  const int lane = int(emulator::current_lane());
  for (int i = 0; i < Fragment::num_elements; i++)
    p[emulator::offset_in_memory<Fragment>(lane, i, ldm, layout == mem_row_major)] = f.x[i];
}

template <int m, int n, int k, typename D, typename A, typename ALayout, typename B, typename BLayout,
          typename C>
__forceinline__ void mma_sync(fragment<accumulator, m, n, k, D>& d,
                              const fragment<matrix_a, m, n, k, A, ALayout>& a,
                              const fragment<matrix_b, m, n, k, B, BLayout>& b,
                              const fragment<accumulator, m, n, k, C>& c, bool saturates = false,
                              EMULATOR_HERE) {
  static_assert(std::is_same_v<A, B>, "mma_sync needs the same type of both operands");
  static_assert(!std::is_same_v<A, experimental::precision::b1>, "bmma_sync multiplies fragments of b1");
  emulator::multiply_matrices({m, n, k, a.part(), b.part(), c.part(), d.part(), saturates},
                              emulator::Operation::mma_sync, where);
}

using OfBits = experimental::precision::b1;
__forceinline__ void bmma_sync(fragment<accumulator, 8, 8, 128, int>& d,
                               const fragment<matrix_a, 8, 8, 128, OfBits, row_major>& a,
                               const fragment<matrix_b, 8, 8, 128, OfBits, col_major>& b,
                               const fragment<accumulator, 8, 8, 128, int>& c,
                               experimental::bmmaBitOp operation = experimental::bmmaBitOpXOR,
                               experimental::bmmaAccumulateOp = experimental::bmmaAccumulateOpPOPC,
                               EMULATOR_HERE) {
  const bool is_xor = operation == experimental::bmmaBitOpXOR;
  emulator::multiply_matrices({8, 8, 128, a.part(), b.part(), c.part(), d.part(), false, is_xor},
                              emulator::Operation::bmma_sync, where);
}

inline float __float_to_tf32(float value) { return emulator::round_to_tf32(value); }

}  // namespace nvcuda::wmma
