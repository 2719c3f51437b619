// Matrices that are distributed over a warp.
#include "emulator/matrix.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <vector>

#include "../report/report.h"
#include "emulator/small_floats.h"
#include "emulator/warp_wide.h"

namespace emulator {
namespace {

template <typename T>
T value_at(const void* values, int i) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(values) + i * sizeof(T), sizeof(T));
  return value;
}

template <typename T>
void put_at(void* values, int i, T value) {
  std::memcpy(static_cast<std::byte*>(values) + i * sizeof(T), &value, sizeof(T));
}

// Element `i`, of `bits` bits.
std::uint32_t packed_at(const void* values, int i, int bits) {
  const int in_a_word = 32 / bits;
  return value_at<std::uint32_t>(values, i / in_a_word) >> bits * (i % in_a_word) & ((1u << bits) - 1);
}

double read_element(const MatrixPart& part, int i) {
  switch (part.type) {
    case Element::f16:
      return read_format(value_at<std::uint16_t>(part.values, i), kHalf);
    case Element::bf16:
      return read_format(value_at<std::uint16_t>(part.values, i), kBFloat16);
    case Element::tf32:  // the lowest 13 bits are not read
      return std::bit_cast<float>(value_at<std::uint32_t>(part.values, i) & ~0x1fffu);
    case Element::f32:
      return value_at<float>(part.values, i);
    case Element::f64:
      return value_at<double>(part.values, i);
    case Element::e4m3:
      return read_format(value_at<std::uint8_t>(part.values, i), kE4M3);
    case Element::e5m2:
      return read_format(value_at<std::uint8_t>(part.values, i), kE5M2);
    case Element::s8:
      return value_at<std::int8_t>(part.values, i);
    case Element::u8:
      return value_at<std::uint8_t>(part.values, i);
    case Element::u4:
      return packed_at(part.values, i, 4);
    case Element::s4:
      return int(packed_at(part.values, i, 4) ^ 8) - 8;  // the highest bit is the sign
    case Element::b1:
      return packed_at(part.values, i, 1);
    default:
      return value_at<std::int32_t>(part.values, i);
  }
}

void write_element(const MatrixPart& part, int i, double value, bool saturates) {
  switch (part.type) {
    case Element::f16:
      return put_at(part.values, i, std::uint16_t(round_to_format(value, kHalf)));
    case Element::f32:
      return put_at(part.values, i, float(value));
    case Element::f64:
      return put_at(part.values, i, value);
    default: {
      using Limits = std::numeric_limits<std::int32_t>;
      const double bounded =
          saturates ? std::clamp(value, double(Limits::min()), double(Limits::max())) : value;
      return put_at(part.values, i, std::int32_t(std::int64_t(bounded)));
    }
  }
}

using Matrix = std::vector<double>;  // row by row

// Collects the parts of all lanes. `part` is a member of MatrixMultiplication.
template <typename Part>
Matrix gather(void* const (&lanes)[kWarpLanes], Part part, int rows, int columns) {
  Matrix matrix(std::size_t(rows * columns));
  for (int lane = 0; lane < int(kWarpLanes); lane++) {
    const MatrixPart& own = static_cast<const MatrixMultiplication*>(lanes[lane])->*part;
    for (int i = 0; i < own.count; i++) {
      const MatrixPlace place = place_in_matrix(rows, columns, own.group, lane, i);
      matrix[std::size_t(place.row * columns + place.column)] = read_element(own, i);
    }
  }
  return matrix;
}

double sum_of_products(const double* a, const double* b, double sum, const MatrixMultiplication& of) {
  const bool is_double = of.a.type == Element::f64;
  for (int i = 0; i < of.k; i++)
    if (of.is_xor)
      sum += a[i] != b[i];
    else
      sum = is_double ? std::fma(a[i], b[i], sum) : sum + a[i] * b[i];
  return sum;
}

void multiply_in_warp(void* const (&lanes)[kWarpLanes]) {
  const auto& first = *static_cast<const MatrixMultiplication*>(lanes[0]);
  const int m = first.m, n = first.n, k = first.k;
  const Matrix a = gather(lanes, &MatrixMultiplication::a, m, k);
  const Matrix b = gather(lanes, &MatrixMultiplication::b, n, k);  // its transpose
  const Matrix c = gather(lanes, &MatrixMultiplication::c, m, n);
  for (int lane = 0; lane < int(kWarpLanes); lane++) {
    const auto& own = *static_cast<const MatrixMultiplication*>(lanes[lane]);
    for (int i = 0; i < own.d.count; i++) {
      const auto [row, column] = place_in_matrix(m, n, own.d.group, lane, i);
      const double sum = sum_of_products(&a[std::size_t(row * k)], &b[std::size_t(column * k)],
                                         c[std::size_t(row * n + column)], own);
      write_element(own.d, i, sum, own.saturates);
    }
  }
}

void add_misaligned_matrix(const char* problem, std::string what, Position where) {
  if (!is_on(Check::memory)) return;
  const Cause cause{Check::memory, problem, nullptr, where.file_name(), where.line(), where.column()};
  if (is_new(cause)) add(cause, {false, std::move(what), at(where), "the results are undefined on a GPU"});
}

}  // namespace

void multiply_matrices(const MatrixMultiplication& own, Operation operation, Position where) {
  compute_in_warp(operation, const_cast<MatrixMultiplication*>(&own), multiply_in_warp, where);
}

void meet_at_matrix(const void* matrix, std::size_t row_bytes, Operation operation, Position where) {
  const std::string name = name_of(operation);
  if (reinterpret_cast<std::uintptr_t>(matrix) % 32)
    add_misaligned_matrix("misaligned matrix",
                          name + " is given a pointer that is not a multiple of 32 bytes", where);
  if (row_bytes % 16)
    add_misaligned_matrix("misaligned rows",
                          name + " is given a leading dimension of " + std::to_string(row_bytes) +
                              " bytes, which is not a multiple of 16",
                          where);
  compute_in_warp(operation, nullptr, nullptr, where);
}

}  // namespace emulator
