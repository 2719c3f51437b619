// Order through memory: a thread that reads a value written after a fence, by an atomic or a volatile access,
// knows everything that the writer did before the fence.
//
// Atomics only record: each address has a list of releases, each block one of acquisitions. Whether one
// thread knows of another's access is determined only when the two collide and nothing simpler orders them;
// then the lists are searched.
#pragma once

#include "happens_before.h"

EMULATOR_BEGIN
namespace emulator {

struct Access;

void forget_releases();  // of the launch before
void begin_releases(BlockClock& clock);
void record_barrier(BlockClock& clock, Time before);  // `before`: the barrier before it
void record_warp_sync(BlockClock& clock, unsigned warp, std::uint32_t lanes);
void record_synchronising(const Access& access);  // an atomic or volatile one, of the thread that runs
bool is_released(Epoch earlier);                  // to the thread that runs

}  // namespace emulator
EMULATOR_END
