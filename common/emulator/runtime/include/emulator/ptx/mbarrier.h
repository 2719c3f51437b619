// PTX's mbarrier: a barrier in shared memory that counts arrivals and bytes. It is the object that
// cuda::barrier is made of, so that programs can use one barrier in both ways.
#pragma once

#include "emulator/ptx/memory.h"

EMULATOR_BEGIN
namespace emulator::ptx {

inline AsyncBarrier* barrier_at(const std::byte* address) {
  return reinterpret_cast<AsyncBarrier*>(const_cast<std::byte*>(address));
}

inline void mbarrier_init(std::byte* address, std::uint32_t count, EMULATOR_HERE) {
  init_barrier(barrier_at(address), count, where);
}
inline void mbarrier_inval(std::byte* address) { drop_barrier(barrier_at(address)); }

inline void mbarrier_expect_tx(std::byte* address, std::uint32_t bytes, EMULATOR_HERE) {
  expect_bytes(barrier_at(address), bytes, where);
}
inline void mbarrier_complete_tx(std::byte* address, std::uint32_t bytes, EMULATOR_HERE) {
  expect_bytes(barrier_at(address), -std::int64_t(bytes), where);
}

// Returns the phase that the calling thread arrived in.
template <bool drops>
std::uint64_t mbarrier_arrive(std::byte* address, std::uint32_t count, std::uint32_t bytes, EMULATOR_HERE) {
  if (bytes) mbarrier_expect_tx(address, bytes, where);
  return arrive_at_barrier(barrier_at(address), count, drops, where);
}

// Whether the phase that an arrival returned has been completed, or the latest phase with a parity.
inline bool mbarrier_test(const std::byte* address, std::uint64_t phase, EMULATOR_HERE) {
  return is_phase_complete(barrier_at(address), std::uint32_t(phase), where);
}
inline bool mbarrier_test_parity(const std::byte* address, std::uint32_t parity, EMULATOR_HERE) {
  return mbarrier_test(address, phase_with_parity(barrier_at(address), parity & 1, where), where);
}

// Arrives once the copies that the thread has started have arrived. They do so now.
inline void cp_async_mbarrier_arrive(std::byte* address, std::uint32_t count, EMULATOR_HERE) {
  cp_async_wait_all();
  mbarrier_arrive<false>(address, count, 0, where);
}

// A store to a block of the cluster, which a barrier of that block waits for.
template <typename T, std::size_t count>
__forceinline__ void st_async(std::byte* address, const Vector<T, count>& values, std::byte* barrier,
                              EMULATOR_HERE) {
  *reinterpret_cast<Vector<T, count>*>(address) = values;
  mbarrier_complete_tx(barrier, sizeof(values), where);
}

}  // namespace emulator::ptx
EMULATOR_END
