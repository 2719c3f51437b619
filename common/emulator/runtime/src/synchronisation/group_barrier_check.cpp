// Checks of the barriers of blocks, clusters and grids.
#include <algorithm>
#include <map>
#include <string>

#include "../scheduler/failure.h"
#include "../scheduler/scheduler.h"
#include "barrier_check.h"
#include "group_barriers.h"

namespace emulator {
namespace {

const Thread* find_waiting(Block& block, Scope scope) {
  for (const Thread* thread : barrier_of(block, scope).waiting)
    if (thread->block == &block) return thread;
  return nullptr;
}

// Threads, or whole blocks, that ended before a barrier of the cluster that others have reached.
void add_ended(Block& block, const Thread& waiting, Scope scope) {
  const Cause cause = cause_at("ended before a barrier", waiting.where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  const bool is_whole = block.alive == 0;
  add(cause,
      {true,
       (is_whole ? "block " + text_of(block.index) + " ended"
                 : std::to_string(block.returned) + " threads of block " + text_of(block.index) + " ended") +
           " before the " + name_of(waiting.operation) + " that others reached",
       at(waiting.where),
       std::string("GPUs continue without them, but the barrier is for all threads of the ") +
           name_of(scope) + ":\nlet all of them reach it, and put the work between barriers inside an if"});
}

// Threads of one block that wait for the grid in different calls.
bool are_at_one_call(const Block& block) {
  const Thread* first = nullptr;
  for (const Thread* thread : running.launch->schedule.barrier.waiting) {
    if (thread->block != &block) continue;
    if (!first) first = thread;
    if (thread->operation != first->operation || !is_same(thread->where, first->where)) return false;
  }
  return true;
}

// Some threads of a block wait for the others, which wait elsewhere.
bool is_divided(const Block& block, Scope scope) {
  return block.alive > 0 && block.arrived[int(scope)] > 0 && !block.has_arrived[int(scope)];
}

void add_ended_blocks(const Thread& waiting, std::uint64_t present) {
  const std::uint64_t all = running.launch->schedule.blocks;
  const Cause cause = cause_at("blocks never reach the barrier", waiting.where);
  const AboutThread none(nullptr);
  if (is_new(cause))
    add(cause, {false,
                std::to_string(all - present) + " of " + std::to_string(all) + " blocks ended before the " +
                    name_of(waiting.operation) + " at which the others wait forever",
                at(waiting.where),
                "all threads of all blocks must reach a barrier of the grid, as often as each other;\n"
                "a block without work must not return before it"});
}

void add_different_waits(const std::map<std::string, unsigned>& places, const Thread& waiting) {
  const Cause cause = cause_at("different group barriers", waiting.where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  std::string detail;
  for (const auto& [place, threads] : places)
    detail +=
        std::to_string(threads) + (threads == 1 ? " thread waits at " : " threads wait at ") + place + "\n";
  add(cause,
      {false,
       std::string("threads wait at ") + name_of(waiting.operation) +
           " forever, because others wait elsewhere",
       at(waiting.where), detail + "all threads of a group must reach its barriers in the same order"});
}

}  // namespace

const char* name_of(Scope scope) {
  return scope == Scope::block ? "block" : scope == Scope::cluster ? "cluster" : "grid";
}

void check_group_barrier(const std::vector<Block*>& blocks, Scope scope) {
  if (!is_on(Check::barriers)) return;
  for (Block* block : blocks)
    if (scope == Scope::grid && !block->is_diverged && !are_at_one_call(*block))
      add_different_barriers(*block);
  const auto& all = scope == Scope::cluster ? blocks.front()->cluster->blocks : blocks;
  const auto& threads = barrier_of(*blocks.front(), scope).waiting;
  const Thread& waiting = threads.empty() ? *running.thread : *threads.front();
  if (waiting.operation == Operation::none) return;
  for (Block* block : all) {
    if (block->returned > block->returned_before) add_ended(*block, waiting, scope);
    block->returned_before = block->returned;
  }
}

void add_missed_wait(Thread& thread, Scope scope) {
  if (!is_on(Check::barriers) || thread.was_ended) return;
  const Position where = thread.arrived_where[int(scope)];
  const Cause cause = cause_at("ended without waiting", where);
  const AboutThread about(&thread);
  if (is_new(cause))
    add(cause, {true,
                std::string("threads arrive at the barrier of the ") + name_of(scope) +
                    " and end without waiting there",
                at(where), "each barrier_arrive needs a barrier_wait"});
}

void refuse_group_call(const char* problem, const std::string& what, const std::string& detail,
                       Position where) {
  if (!is_on(Check::barriers)) abandon("%s, in %s", what.c_str(), at(where).c_str());
  const Cause cause = cause_at(problem, where);
  if (is_new(cause)) add(cause, {false, what, at(where), detail});
  set_error(cudaErrorLaunchFailure);
  end_thread();
}

bool add_deadlock_of_groups() {
  const Schedule& schedule = running.launch->schedule;
  const Thread* waiting = nullptr;
  std::uint64_t present = 0;
  std::map<std::string, unsigned> places;
  for (Block* block : schedule.resident) {
    present += block->alive > 0;
    for (const Scope scope : {Scope::block, Scope::cluster, Scope::grid}) {
      if (is_divided(*block, scope)) return add_different_barriers(*block), true;
      const Thread* here = find_waiting(*block, scope);
      if (here && !waiting) waiting = here;
    }
    for (const Thread& thread : block->threads)
      if (thread.operation != Operation::none && block->alive > 0)
        places[std::string(name_of(thread.operation)) + " in " + at(thread.where)]++;
  }
  if (!waiting) return false;
  const bool is_of_grid =
      waiting->operation == Operation::grid_sync || waiting->operation == Operation::grid_wait;
  if (is_of_grid && places.size() == 1)
    add_ended_blocks(*waiting, present + schedule.ended_by_checks);
  else
    add_different_waits(places, *waiting);
  return true;
}

}  // namespace emulator
