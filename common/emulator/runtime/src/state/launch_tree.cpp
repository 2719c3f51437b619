#include "launch_tree.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace emulator {
namespace {

std::vector<TracedLaunch>& traced_launches() {
  static auto& all = *new std::vector<TracedLaunch>;
  return all;
}

}  // namespace

void clear_launch_tree() { traced_launches().clear(); }

void add_to_launch_tree(const TracedLaunch& launch) { traced_launches().push_back(launch); }

const TracedLaunch& launch_of_block(std::uint64_t block) {
  const auto after = std::upper_bound(
      traced_launches().begin(), traced_launches().end(), block,
      [](std::uint64_t number, const TracedLaunch& launch) { return number < launch.first_block; });
  return *std::prev(after);
}

}  // namespace emulator
