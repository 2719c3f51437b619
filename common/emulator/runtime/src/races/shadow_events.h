// What the checks for races and for uninitialised memory need to know of a launch.
#pragma once

#include <cstdint>

#include "../launch/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

struct Access;

void check_shadow(const Access& access);  // of global or shared memory
void shadow_launch_begins();
void shadow_launch_ends();
void shadow_block_begins(Block& block);
void shadow_thread_ends(const Thread& thread);
void shadow_block_barrier(Block& block);
void shadow_warp_synchronised(Block& block, unsigned warp, std::uint32_t mask);
void shadow_fence(const Thread& thread);
// A copy to shared memory of the running block that arrives later. Until then the place is uninitialised; a
// read in between is found as such, and not as a race as well.
void shadow_copy_starts(const std::byte* to, std::size_t size);
void shadow_copy_arrives(const std::byte* to, std::size_t size);

}  // namespace emulator
EMULATOR_END
