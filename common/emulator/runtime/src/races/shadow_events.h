// What the checks for races and for uninitialised memory need to know of a launch.
#pragma once

#include <cstdint>
#include <vector>

#include "../launch/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

struct Access;
struct Allocation;

void check_shadow(const Access& access);  // of global or shared memory
// Whether a thread of the running launch has written any of these bytes. After check_shadow was called for
// it.
bool is_written_in_launch(const Allocation& allocation, const void* begin, std::size_t size);
void shadow_launch_begins();
void shadow_launch_ends();
void shadow_block_begins(Block& block);
void shadow_thread_ends(Thread& thread);
void shadow_block_barrier(Block& block);
void shadow_warp_synchronised(Block& block, unsigned warp, std::uint32_t mask);
void shadow_fence(const Thread& thread);
// A thread arrives at a barrier, and later waits there: what it does in between comes after the barrier.
void shadow_arrives(Thread& thread, Scope scope);
void shadow_waits();
// All threads of these blocks have arrived at the barrier of their cluster or grid.
void shadow_blocks_synchronised(const std::vector<Block*>& blocks, Scope scope);

}  // namespace emulator
EMULATOR_END
