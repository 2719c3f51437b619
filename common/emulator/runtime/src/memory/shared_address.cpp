#include "emulator/shared_address.h"

#include "../state/launch_state.h"
#include "emulator/groups.h"

namespace emulator {
namespace {

// Devices reserve a kilobyte at the beginning of the window, so that 0 is the address of no variable.
constexpr std::ptrdiff_t kWindowStart = 1024;
// The bits from here on name a block of the cluster: its rank plus one, or 0 for the block of the thread
// itself.
constexpr unsigned kRankBits = 24;
static_assert(kArenaSpan + kArenaGap + kWindowStart < (1u << kRankBits));

const std::byte* window() {
  if (!running.thread) abandon("an address of shared memory was used outside of a kernel");
  return running.thread->block->arena.bytes;
}

}  // namespace

std::uint32_t shared_address(const void* pointer) {
  if (!is_shared(pointer))
    abandon("converts a pointer to an address of shared memory, but it points elsewhere");
  return std::uint32_t(static_cast<const std::byte*>(pointer) - window() + kWindowStart);
}

void* shared_pointer(std::uint32_t address, Position where) {
  const unsigned rank = address >> kRankBits;
  const std::byte* own = window() + (std::ptrdiff_t(address & ((1u << kRankBits) - 1)) - kWindowStart);
  return rank ? map_to_peer(own, rank - 1, where) : const_cast<std::byte*>(own);
}

std::uint32_t address_in_cluster(std::uint32_t address, unsigned rank) {
  return (address & ((1u << kRankBits) - 1)) | (rank + 1) << kRankBits;
}

}  // namespace emulator
