// What the checks for races and for uninitialised memory need to know of a launch.
#pragma once

#include <cstddef>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

struct Access;
struct Allocation;

void check_shadow(const Access& access);  // of global or shared memory
// Whether a thread of the running launch has written any of these bytes. After check_shadow was called for
// it.
bool is_written_in_launch(const Allocation& allocation, const void* begin, std::size_t size);
// `needs_every_access`: something else than the checks needs it, too.
void shadow_launch_begins(bool needs_every_access);
void shadow_launch_ends();

}  // namespace emulator
EMULATOR_END
