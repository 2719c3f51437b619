// Prints where stage 7 keeps the recurrent weights of an LSTM in bfloat16 on the current device, by state
// size:
//
//   persistent=stages/stage7_sequence/csrc/persistent
//   python -m common.emulator run -I $persistent common/studies/sequence/plans.cu [-- BATCH]
//
// EMULATOR_DEVICE describes the device. A plan needs the limits of the device and the sizes of the kernels,
// but does not run them, so they are empty here and this program compiles in seconds.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "kernels.h"
#include "launch.cpp"  // a source, so that it uses the kernels_of below
#include "product.cuh"

__global__ void empty_kernel() {}

template <typename Cell, Scalar kScalar>
Kernels kernels_of() {
  using Unit = TensorCores<__nv_bfloat16>;  // all plans here are for bfloat16
  const KernelPair pair = {reinterpret_cast<const void*>(&empty_kernel),
                           reinterpret_cast<const void*>(&empty_kernel)};
  return {{pair, pair, pair}, Cell::kGates, sizeof(Unit::scalar_t), sizeof(Unit::math_t), Unit::kHeld};
}

// The rung that the library chooses. Its name says how blocks exchange the state, if there are several.
std::string describe_plan(int64_t batch, int64_t state, bool backward) {
  const Sizes sizes = {128, batch, state};
  std::string reason;
  for (const auto& [name, rung] : {std::pair("cluster", Rung::kCluster), std::pair("grid", Rung::kGrid)}) {
    const auto plan = make_plan(rung, CellKind::kLstm, Scalar::kBfloat16, sizes, backward, reason);
    if (!plan) continue;
    const std::string size = std::to_string((plan->shared_bytes + 1023) / 1024) + " KB";
    const int blocks = plan->partition.blocks;
    return blocks == 1 ? "1 block of " + size
                       : std::string(name) + ", " + std::to_string(blocks) + " of " + size;
  }
  return "loop";
}

int main(int count, char** words) {
  const int64_t batch = count > 1 ? std::atoll(words[1]) : 16;
  std::printf("%6s   %-24s%s\n", "S", "forward", "backward");
  for (const int state : {64, 128, 256, 384, 512, 768, 1024, 1536, 2048})
    std::printf("%6d   %-24s%s\n", state, describe_plan(batch, state, false).c_str(),
                describe_plan(batch, state, true).c_str());
}
