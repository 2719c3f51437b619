// Stands for CUDA's header of this name.
#pragma once

#include "cuda_runtime.h"
#include "emulator/async.h"

using __mbarrier_t = emulator::AsyncBarrier;
using __mbarrier_token_t = std::uint64_t;  // the phase of an arrival

EMULATOR_BEGIN
inline std::uint32_t __mbarrier_maximum_count() { return (1 << 20) - 1; }
inline void __mbarrier_init(__mbarrier_t* barrier, std::uint32_t expected, EMULATOR_HERE) {
  emulator::init_barrier(barrier, expected, where);
}
inline void __mbarrier_inval(__mbarrier_t* barrier) { emulator::drop_barrier(barrier); }
inline __mbarrier_token_t __mbarrier_arrive(__mbarrier_t* barrier, EMULATOR_HERE) {
  return emulator::arrive_at_barrier(barrier, 1, false, where);
}
inline __mbarrier_token_t __mbarrier_arrive_and_drop(__mbarrier_t* barrier, EMULATOR_HERE) {
  return emulator::arrive_at_barrier(barrier, 1, true, where);
}
inline bool __mbarrier_test_wait(__mbarrier_t* barrier, __mbarrier_token_t token, EMULATOR_HERE) {
  return emulator::is_phase_complete(barrier, std::uint32_t(token), where);
}
inline bool __mbarrier_try_wait(__mbarrier_t* barrier, __mbarrier_token_t token, std::uint32_t,
                                EMULATOR_HERE) {
  return emulator::is_phase_complete(barrier, std::uint32_t(token), where);
}
inline bool __mbarrier_test_wait_parity(__mbarrier_t* barrier, bool parity, EMULATOR_HERE) {
  const std::uint32_t phase = emulator::phase_with_parity(barrier, parity, where);
  return emulator::is_phase_complete(barrier, phase, where);
}
inline bool __mbarrier_try_wait_parity(__mbarrier_t* barrier, bool parity, std::uint32_t, EMULATOR_HERE) {
  return __mbarrier_test_wait_parity(barrier, parity, where);
}
EMULATOR_END
