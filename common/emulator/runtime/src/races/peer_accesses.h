// Accesses to the shared memory of another block of the cluster: that block must have started before, and
// must not end before.
#pragma once

#include "../memory/access.h"

EMULATOR_BEGIN
namespace emulator {

void begin_peer_accesses(Block& block, bool has_peers);  // to its shared memory
void check_peer(const Access& access);                   // of the running thread
void settle_peer_accesses(Thread& thread);  // it ends; the last thread of a block takes its memory along

}  // namespace emulator
EMULATOR_END
