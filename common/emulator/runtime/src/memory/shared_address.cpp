#include "emulator/shared_address.h"

#include "../launch/failure.h"
#include "../launch/launch_state.h"

namespace emulator {
namespace {

// Devices reserve a kilobyte at the beginning of the window, so that 0 is the address of no variable.
constexpr std::ptrdiff_t kWindowStart = 1024;

const std::byte* window() {
  if (!running.thread) abandon("an address of shared memory was used outside of a kernel");
  return running.thread->block->arena.bytes;
}

}  // namespace

bool is_shared(const void* pointer) {
  const std::ptrdiff_t offset = static_cast<const std::byte*>(pointer) - window();
  return offset >= 0 && offset < std::ptrdiff_t(kArenaSpan + 2 * kArenaGap);
}

std::uint32_t shared_address(const void* pointer) {
  if (!is_shared(pointer)) abandon("converts a pointer to an address of shared memory, but it points elsewhere");
  return std::uint32_t(static_cast<const std::byte*>(pointer) - window() + kWindowStart);
}

void* shared_pointer(std::uint32_t address) {
  return const_cast<std::byte*>(window()) + (std::ptrdiff_t(address) - kWindowStart);
}

}  // namespace emulator
