// The two sides of a copy, and the checks of both.
#pragma once

#include <string>

#include "../../memory/allocation.h"
#include "../streams/streams.h"
#include "allocations.h"
#include "emulator/memory_api.h"

EMULATOR_BEGIN
namespace emulator {

bool is_symbol(const void* address);  // a variable at file scope, not a copy on a stack

// Rows of bytes, in one slice or several; one row for plain copies.
struct Rows {
  const void* begin;
  std::size_t pitch, width, height;
  std::size_t slice_pitch = 0, depth = 1;

  std::size_t count() const { return height * depth; }
  const std::byte* row(std::size_t i) const {
    return static_cast<const std::byte*>(begin) + i / height * slice_pitch + i % height * pitch;
  }
  std::byte* writable(std::size_t i) const { return const_cast<std::byte*>(row(i)); }
  std::size_t span() const { return slice_pitch * (depth - 1) + pitch * (height - 1) + width; }
  MemoryUse use(bool writes) const {
    const bool has_gaps = depth == 1 && height > 1 && pitch > width;
    return {begin, span(), writes, has_gaps ? pitch : 0, width};
  }
};
inline Rows one_row(const void* begin, std::size_t bytes) { return {begin, bytes, bytes, 1}; }

// One side of a copy.
struct Side {
  Rows region;
  const Allocation* allocation;  // null: ordinary host memory
  std::string name;              // as the program calls it; may be empty
  const char* role;              // "its destination"

  Space space() const { return allocation->space; }
  bool on_device() const { return allocation != nullptr; }
  bool on_host() const {
    return !allocation || (space() != Space::device && space() != Space::array &&
                           space() != Space::variable && space() != Space::heap);
  }
  bool is_pageable() const { return !allocation || space() == Space::tensor || allocation->is_registered; }
  std::string called() const { return name.empty() ? role : name; }
};
// For the current call: `argument` is the number of the argument that names this side.
Side side_of(const Rows& region, int argument, const char* role);

// A finding, and the error that the call returns.
cudaError_t refuse_copy(const char* problem, const Side& side, std::string what, std::string detail);
cudaError_t check_side(const Side& side, bool is_read);  // whether its memory allows this access
cudaError_t check_direction(const Side& to, const Side& from, cudaMemcpyKind kind);
// A copy of uninitialised memory to the host counts as a read: no thread has written this result.
void check_copied_initialised(const Side& from, const char* call, Position where);

}  // namespace emulator
EMULATOR_END
