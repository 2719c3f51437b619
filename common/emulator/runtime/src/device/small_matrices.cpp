// ldmatrix and stmatrix: the exchange between lanes that have rows and lanes that have pairs of elements.
#include "emulator/ptx/matrix.h"

namespace emulator::ptx {
namespace {

SmallMatrices& of_lane(void* lane) { return *static_cast<SmallMatrices*>(lane); }

// Calls `move(row of 8 elements, column, half of a register)` for each of the two elements of a lane.
template <typename Move>
void each_element(void* const (&lanes)[kWarpLanes], Move move) {
  for (int lane = 0; lane < int(kWarpLanes); lane++) {
    SmallMatrices& own = of_lane(lanes[lane]);
    for (int matrix = 0; matrix < own.count; matrix++)
      for (int i = 0; i < 2; i++) {
        const int fixed = lane / 4, along = lane % 4 * 2 + i;
        const int row = own.is_transposed ? along : fixed, column = own.is_transposed ? fixed : along;
        auto* elements = reinterpret_cast<std::uint16_t*>(of_lane(lanes[8 * matrix + row]).row.x);
        move(elements[column], reinterpret_cast<std::uint16_t*>(&own.parts[matrix])[i]);
      }
  }
}

}  // namespace

void distribute_rows(SmallMatrices& own, Operation operation, Position where) {
  const WarpComputation compute = [](void* const(&lanes)[kWarpLanes]) {
    each_element(lanes, [](const std::uint16_t& element, std::uint16_t& part) { part = element; });
  };
  compute_in_warp(operation, &own, compute, where);
}

void collect_rows(SmallMatrices& own, Operation operation, Position where) {
  const WarpComputation compute = [](void* const(&lanes)[kWarpLanes]) {
    each_element(lanes, [](std::uint16_t& element, const std::uint16_t& part) { element = part; });
  };
  compute_in_warp(operation, &own, compute, where);
}

}  // namespace emulator::ptx
