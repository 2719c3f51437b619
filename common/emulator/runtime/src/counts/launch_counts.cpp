// Finds blocks and warps of a launch without work, and elements that more than one thread stores.
#include "../races/race_text.h"
#include "../state/launch_state.h"
#include "counts.h"

namespace emulator {
namespace {

constexpr std::size_t kMostStored = 1 << 20;  // elements; stores to further elements are not compared

CountedKernel& kernel_now() { return counts().kernels[counts().kernel]; }

std::string place_in_grid(const CountedThread& thread) {
  const Configuration& launch = running.launch->configuration;
  return "block " + text_of(index_at(launch.grid, thread.block - running.launch->first_block)) + ", thread " +
         text_of(index_at(launch.block, thread.rank));
}

}  // namespace

void count_as_busy(const Thread& thread, bool is_global) {
  LaunchCounts& launch = counts().launch;
  const std::uint64_t block = thread.block->number, warp = block * thread.block->warps.size() + thread.warp();
  if (launch.busy_blocks.insert(block).second) kernel_now().idle_blocks--;
  if (is_global && launch.busy_warps.insert(warp).second) kernel_now().idle_warps--;
}

void count_store(const Access& access) {
  auto& stored_by = counts().launch.stored_by;
  CountedKernel& kernel = kernel_now();
  const auto address = reinterpret_cast<std::uintptr_t>(access.address);
  const CountedThread now{running.thread->block->number, running.thread->rank};
  const auto before = stored_by.find(address);
  if (before == stored_by.end()) {
    kernel.stored_bytes += access.size;
    if (stored_by.size() < kMostStored) stored_by.emplace(address, now);
  } else if (before->second != now) {
    if (kernel.repeated_stores++ == 0)
      kernel.first_repeated = element_at(access, access.address) + ", by " + place_in_grid(before->second) +
                              ", and by " + place_in_grid(now);
  }
}

}  // namespace emulator
