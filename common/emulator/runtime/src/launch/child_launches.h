// Launches by the threads of a kernel (dynamic parallelism). A launch and all launches below it are a tree.
//
// CUDA lets a child run at any time after its launch, and no kernel can wait for it. Here children run when
// their parent's threads have ended: first those of streams, then those of cudaStreamTailLaunch, each with
// all launches below it. Within a stream, and with cudaStreamTailLaunch, they run in order. The default
// stream is one for each block.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

#include "../ordering/happens_before.h"
#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

struct ChildLaunch {
  LaunchInfo info;
  std::shared_ptr<void> closure;
  std::uint64_t block;                       // of the thread that launched it
  std::shared_ptr<const KnownBlocks> known;  // to that thread, when it launched it
};

// Of all cores that run the launching kernel.
struct ChildLaunches {
  std::mutex mutex;
  std::vector<std::shared_ptr<ChildLaunch>> in_order;
};

// Launches, one inside another: on an H200, the limit of pending launches.
constexpr int kMostNested = 2048;

cudaError_t launch_child(LaunchInfo info);

void begin_launch_tree(LaunchState& root);
// The next child that runs after the launch, whose threads have ended; null if there is none.
std::shared_ptr<ChildLaunch> next_child(LaunchState& launch);
void begin_child(LaunchState& child, const LaunchState& parent, const ChildLaunch& from);
void end_child(const ChildLaunch& child, const LaunchState& state);

}  // namespace emulator
EMULATOR_END
