// Order through memory: what a thread did before a fence is known to those who read what it wrote after the
// fence, by atomics or volatile accesses.
//
// Atomics only take notes: each address has a list of releases, each block one of acquisitions. Whether one
// thread knows of another's access is asked only when the two collide and nothing simpler orders them; then
// the lists are searched.
#pragma once

#include "order.h"

EMULATOR_BEGIN
namespace emulator {

struct Access;

void forget_releases();  // of the launch before
void begin_releases(BlockOrder& order);
void note_barrier(BlockOrder& order, Time before);  // `before`: the barrier before it
void note_meeting(BlockOrder& order, unsigned warp, std::uint32_t lanes);
void note_synchronising(const Access& access);  // an atomic or volatile one, of the thread that runs
bool is_released(Stamp earlier);                // to the thread that runs

}  // namespace emulator
EMULATOR_END
