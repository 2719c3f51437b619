// Divides the blocks of a launch among the cores of the host. Each core has its own scheduler and fibers.
//
// Only launches without checks are divided: a check compares an access with those of all earlier blocks. The
// results are those of one core, because a block that does what other blocks or the host may notice first
// takes its turn: it waits until all blocks that started before it have ended. Atomic and volatile accesses
// to global memory, output, the heap and failures need a turn. Blocks that wait for each other give this
// order up.
#pragma once

#include <cstdint>
#include <optional>

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

// Whether other cores may take a share of the running launch. Its first cluster runs alone: it may declare
// clusters, exceed a limit, or wait for other blocks.
bool can_divide_launch();
// Runs the rest of the launch on all cores, this one included, and returns when it has ended. On each of them
// it calls `run_blocks`, with a state of its own in `running`.
void divide_launch(void (*run_blocks)());
bool is_stopped();  // because another core's part has failed
bool is_launching_core();

// Of clusters, in the order in which they start.
std::optional<std::uint64_t> next_cluster();  // none: all have started
void end_cluster();
void give_up_order();

extern EMULATOR_OF_CORE bool needs_turn;  // before the running blocks may do what others notice
bool wait_for_turn();                     // false: the launch has failed
void take_turn();                         // does not return if the launch has failed
void take_turn_at(const void* address);   // the same, unless it is in shared memory

}  // namespace emulator
EMULATOR_END
