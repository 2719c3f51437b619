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
#include "launch_state.h"

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

bool is_called_by_kernel();  // the calling code is a thread of a kernel
cudaError_t launch_child(LaunchInfo info);

void begin_launch_tree(LaunchState& root);
// The next child that runs after the launch, whose threads have ended; null if there is none.
std::shared_ptr<ChildLaunch> next_child(LaunchState& launch);
void begin_child(LaunchState& child, const LaunchState& parent, const ChildLaunch& from);
void end_child(const ChildLaunch& child, const LaunchState& state);

// The launch of the tree to which a block's number belongs.
struct TracedLaunch {
  std::uint64_t first_block, parent;  // `parent`: the first block of the launch whose thread launched it
  const char* kernel;
  dim3 grid, block;
};
const TracedLaunch& launch_of_block(std::uint64_t block);

}  // namespace emulator
EMULATOR_END
