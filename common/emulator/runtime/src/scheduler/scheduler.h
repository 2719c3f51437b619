// Runs the threads of a grid: opens blocks, starts their threads, and suspends threads that must wait.
#pragma once

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

void run_grid();          // runs running.launch until all its threads have ended, or until it fails
void abandon_schedule();  // threads that still wait never continue; the blocks are kept for the next launch

// The running thread has reached a call at which it may have to wait.
void arrive_at(Operation operation, std::uint32_t mask, Position where);
void wait();  // until made ready
void make_ready(Thread* thread);
void wait_at_activemask();  // until nothing else can run

// The block continues without the running thread, whose next step would do damage.
[[noreturn]] void end_thread();

}  // namespace emulator
EMULATOR_END
