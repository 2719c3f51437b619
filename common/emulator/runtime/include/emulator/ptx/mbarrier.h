// PTX's mbarrier: a barrier in shared memory that counts arrivals and bytes. Its 64 bits are, from the lowest
// on: the arrivals that are left in this phase, those of each phase, the bytes that are still expected, and
// the parity of the phase. GPUs have another layout, which programs must not use either.
#pragma once

#include "emulator/ptx/memory.h"

EMULATOR_BEGIN
namespace emulator::ptx {

struct MBarrier {
  std::uint64_t left : 20, arrivals : 20, bytes : 23, parity : 1;

  static MBarrier from(std::uint64_t bits) { return std::bit_cast<MBarrier>(bits); }
  std::uint64_t to_bits() const { return std::bit_cast<std::uint64_t>(*this); }
};
void refuse_arrival(const MBarrier& barrier,
                    std::uint32_t count);  // more arrivals than are left: does not return

// Begins the next phase when nothing is left.
inline std::uint64_t complete_phase(MBarrier barrier) {
  if (barrier.left == 0 && barrier.bytes == 0) {
    barrier.left = barrier.arrivals;
    barrier.parity ^= 1;
  }
  return barrier.to_bits();
}

__forceinline__ void mbarrier_init(std::byte* address, std::uint32_t count) {
  store<std::uint64_t, Order::weak>(address, MBarrier{count, count, 0, 0}.to_bits());
}

// The phase that the calling thread arrived in. `drops` arrivals are expected no more in later phases.
__forceinline__ std::uint64_t mbarrier_arrive(std::byte* address, std::uint32_t count, std::uint32_t bytes,
                                              std::uint32_t drops) {
  return update<std::uint64_t, Order::ordered>(address, [=](std::uint64_t bits) {
    MBarrier barrier = MBarrier::from(bits);
    if (count > barrier.left) refuse_arrival(barrier, count);
    barrier.bytes += bytes;
    barrier.left -= count;
    barrier.arrivals -= drops;
    return complete_phase(barrier);
  });
}
__forceinline__ void mbarrier_expect_tx(std::byte* address, std::uint32_t bytes) {
  mbarrier_arrive(address, 0, bytes, 0);
}
__forceinline__ void mbarrier_complete_tx(std::byte* address, std::uint32_t bytes) {
  update<std::uint64_t, Order::ordered>(address, [=](std::uint64_t bits) {
    MBarrier barrier = MBarrier::from(bits);
    barrier.bytes -= bytes;
    return complete_phase(barrier);
  });
}

// Whether the phase of a parity, or the phase that an arrival returned, has been completed.
__forceinline__ bool mbarrier_test_parity(const std::byte* address, std::uint32_t parity) {
  return MBarrier::from(load<std::uint64_t, Order::ordered>(address)).parity != (parity & 1);
}
__forceinline__ bool mbarrier_test(const std::byte* address, std::uint64_t phase) {
  return mbarrier_test_parity(address, std::uint32_t(MBarrier::from(phase).parity));
}

// Arrives once the copies that the thread has started have arrived. They do so now.
__forceinline__ void cp_async_mbarrier_arrive(std::byte* address, std::uint32_t count) {
  cp_async_wait_all();
  mbarrier_arrive(address, count, 0, 0);
}

}  // namespace emulator::ptx
EMULATOR_END
