// Barriers of whole blocks, clusters and grids, as other parts of the runtime use them.
#pragma once

#include <string>
#include <vector>

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

GroupBarrier& barrier_of(Block& block, Scope scope);
// The blocks that a barrier synchronises, without those that have ended.
std::vector<Block*> blocks_at(Block& block, Scope scope);
void drop_from_group_barriers(Thread& thread);  // it has ended, and its block no longer counts it as alive

// ---- group_barrier_check.cpp

const char* name_of(Scope scope);                                          // "grid"
void check_group_barrier(const std::vector<Block*>& blocks, Scope scope);  // when all have arrived
void add_missed_wait(Thread& thread, Scope scope);  // it ended between arriving and waiting
[[noreturn]] void refuse_group_call(const char* problem, const std::string& what, const std::string& detail,
                                    Position where);
// No thread can continue. False if this is not because of such a barrier.
bool add_deadlock_of_groups();

}  // namespace emulator
EMULATOR_END
