// Stands for CUDA's header of this name: nvcuda::wmma, matrices that a warp multiplies.
//
// Which lane has which element of a fragment is not specified by CUDA. Here it is the layout of mma
// instructions in the PTX manual, so x[i] of two accumulators of one type are the same element, but code must
// not rely on more.
#pragma once

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
namespace experimental::precision {
struct u4;
struct s4;
struct b1;
}  // namespace experimental::precision

}  // namespace nvcuda::wmma

namespace emulator {

namespace wmma = nvcuda::wmma;

// The type that stores an element, and which of the tensor cores' types it is.
template <typename T>
struct ElementOf;
template <typename T, Element element>
struct StoredElement {
  using Stored = T;
  static constexpr Element kElement = element;
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
// clang-format on

template <typename T>
constexpr bool is_sub_byte = std::is_same_v<T, wmma::experimental::precision::u4> ||
                             std::is_same_v<T, wmma::experimental::precision::s4> ||
                             std::is_same_v<T, wmma::experimental::precision::b1>;

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
  return is_usual && is_accumulator == (element == Element::s32);
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

  // Of `b` its transpose: the shape in which its elements are distributed.
  static constexpr int kRows = kIsB ? n : m, kColumns = kIsAccumulator ? n : k;
  using element_type = T;
  using storage_element_type = typename emulator::ElementOf<T>::Stored;
  // Operands of half have 16 elements, so that a lane may have an element twice.
  static constexpr int num_elements =
      std::is_same_v<T, __half> && !kIsAccumulator ? 16 : kRows * kColumns / 32;
  static constexpr int num_storage_elements = num_elements;
  static constexpr int kGroup = num_elements < 2 ? 1 : 2;

  storage_element_type x[num_elements];

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
requires emulator::is_sub_byte<T> struct fragment<Use, m, n, k, T, Layout> {
  static_assert(!emulator::is_sub_byte<T>, "the emulator does not support wmma fragments of u4, s4 or b1");
};

template <typename Use, int m, int n, int k, typename T, typename Layout>
__forceinline__ void fill_fragment(fragment<Use, m, n, k, T, Layout>& f,
                                   const typename emulator::ElementOf<T>::Stored& value) {
  for (auto& x : f.x) x = value;
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
  meet_at_matrix(p, ldm * sizeof(T), Operation::load_matrix_sync, where);
  const int lane = int(current_lane());
  for (int i = 0; i < Fragment::num_elements; i++)
    f.x[i] = p[offset_in_memory<Fragment>(lane, i, ldm, is_row_major)];
}

}  // namespace emulator

namespace nvcuda::wmma {

template <typename Use, int m, int n, int k, typename T, typename Layout>
requires(!std::is_same_v<Use, accumulator>) __forceinline__
    void load_matrix_sync(fragment<Use, m, n, k, T, Layout>& f,
                          const typename emulator::ElementOf<T>::Stored* p, unsigned ldm, EMULATOR_HERE) {
  emulator::load_fragment(f, p, ldm, std::is_same_v<Layout, row_major>, where);
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
  emulator::multiply_matrices({m, n, k, a.part(), b.part(), c.part(), d.part(), saturates},
                              emulator::Operation::mma_sync, where);
}

inline float __float_to_tf32(float value) { return emulator::round_to_tf32(value); }

}  // namespace nvcuda::wmma
