// What the layers below tell those above, which they know only by this header: the checks learn what a kernel
// does, and the scheduler asks the barriers about its threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "launch_state.h"

EMULATOR_BEGIN
namespace emulator {

// ---- To the checks, from the scheduler and the barriers

void on_block_begins(Block& block);
void on_thread_ends(Thread& thread);
void on_thread_ended(Thread& thread);  // it is no longer a live lane of its warp
void on_block_barrier(Block& block);   // all its threads have arrived
// All lanes that the mask names and that still can have arrived.
void on_warp_synchronised(Block& block, unsigned warp, std::uint32_t mask, std::uint32_t arrived);
// All threads of these blocks have arrived at the barrier of their cluster or grid.
void on_blocks_synchronised(const std::vector<Block*>& blocks, Scope scope);
void on_fence(const Thread& thread);
// A thread arrives at a barrier, and later waits there: what it does in between comes after the barrier.
void on_arrival(Thread& thread, Scope scope);
void on_wait();
void on_phase_complete(const void* barrier, std::uint32_t phase);  // for the running thread, of an object
// The running thread arrives at a barrier that is an address, or has waited there.
void on_release(void* address, std::size_t size);
void on_acquire(void* address, std::size_t size);
// The read and the write of a copy, or of a write alone if `from` is null.
void check_copy(void* to, const void* from, std::size_t bytes, const void* pc);

// ---- To the barriers, from the scheduler

void drop_from_barriers(Thread& thread);  // it has ended: threads that wait for it continue
// Each thread gets the mask of the lanes of its warp that are at the same call. Lanes at an earlier call of
// the same function go first, because they may come to this one: the rest stay in `threads`.
void release_activemask(std::vector<Thread*>& threads);
bool has_global_barrier_objects();  // which blocks may share
// No thread can continue: adds an error that says which threads wait for which.
void add_deadlock();  // sets a failure if the check is switched off
// For a launch that takes too long: "; meanwhile 31 threads wait at ..."; empty if no thread waits.
std::string waiting_threads();

// ---- To streams and tensors, from memory and its checks

void finish_work(const void* work);  // and what it waits for; `work` may be done already
// Keep the memory of temporary tensors until the launch (tensors.cpp): released while launches are locked,
// and dropped after that lock is released.
void release_tensors();
void drop_tensors();

}  // namespace emulator
EMULATOR_END
