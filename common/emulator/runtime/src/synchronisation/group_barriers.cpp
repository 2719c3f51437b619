// Barriers of a block, a cluster or the grid, at which a thread arrives and waits in one step or in two.
//
// A block has arrived when all its threads that have not ended have. A barrier completes when all its blocks
// have arrived. A cluster does not wait for blocks that have ended. A grid does.
#include "group_barriers.h"

#include <algorithm>
#include <stdexcept>

#include "../report/source_lines.h"
#include "../scheduler/scheduler.h"
#include "../state/events.h"
#include "emulator/groups.h"

namespace emulator {
namespace {

Operation wait_operation(Scope scope) {
  constexpr Operation operations[] = {Operation::block_wait, Operation::cluster_wait, Operation::grid_wait};
  return operations[int(scope)];
}

std::uint64_t count_expected(Block& block, Scope scope) {
  const Schedule& schedule = running.launch->schedule;
  return scope == Scope::grid ? schedule.blocks - schedule.ended_by_checks : blocks_at(block, scope).size();
}

void complete(Block& block, Scope scope) {
  GroupBarrier& barrier = barrier_of(block, scope);
  const std::vector<Block*> blocks = blocks_at(block, scope);
  check_group_barrier(blocks, scope);
  on_blocks_synchronised(blocks, scope);
  barrier.phase++;
  barrier.arrived = 0;
  for (Block* each : blocks) {
    each->arrived[int(scope)] = 0;
    each->has_arrived[int(scope)] = false;
  }
  for (Thread* thread : barrier.waiting)
    if (thread != running.thread) make_ready(thread);
  barrier.waiting.clear();
}

void complete_if_all_arrived(Block& block, Scope scope) {
  const GroupBarrier& barrier = barrier_of(block, scope);
  if (barrier.arrived > 0 && barrier.arrived == count_expected(block, scope)) complete(block, scope);
}

void count_block_if_all_arrived(Block& block, Scope scope) {
  bool& has_arrived = block.has_arrived[int(scope)];
  if (has_arrived || block.alive == 0 || block.arrived[int(scope)] != block.alive) return;
  has_arrived = true;
  barrier_of(block, scope).arrived++;
  complete_if_all_arrived(block, scope);
}

void arrive(Scope scope) {
  Block& block = *running.thread->block;
  running.launch->schedule.has_group_barriers = true;
  block.arrived[int(scope)]++;
  count_block_if_all_arrived(block, scope);
}

void wait_for_phase(Scope scope, unsigned phase) {
  GroupBarrier& barrier = barrier_of(*running.thread->block, scope);
  if (barrier.phase != phase) return;
  barrier.waiting.push_back(running.thread);
  wait();
}

void demand_group(Scope scope, const char* call, Position where) {
  if (!running.thread) throw std::runtime_error(std::string(call) + " was called outside of a kernel");
  if (scope == Scope::grid && !running.launch->configuration.is_cooperative)
    refuse_group_call("not cooperative",
                      std::string("calls ") + call + " in a launch that is not cooperative",
                      "only cudaLaunchCooperativeKernel, or cudaLaunchKernelEx with "
                      "cudaLaunchAttributeCooperative,\nruns all blocks of a grid at the same time",
                      where);
  const Thread& thread = *running.thread;
  if (thread.has_arrived[int(scope)])
    refuse_group_call(
        "arrived before",
        std::string("arrives at the barrier of the ") + name_of(scope) + " again before it has waited there",
        "it arrived in " + line_at(thread.arrived_where[int(scope)]) +
            ": barrier_wait must come before the next barrier_arrive or sync",
        where);
}

}  // namespace

GroupBarrier& barrier_of(Block& block, Scope scope) {
  if (scope == Scope::block) return block.barrier;
  return scope == Scope::cluster ? block.cluster->barrier : running.launch->schedule.barrier;
}

std::vector<Block*> blocks_at(Block& block, Scope scope) {
  if (scope == Scope::block) return {&block};
  std::vector<Block*> blocks =
      scope == Scope::cluster ? block.cluster->blocks : running.launch->schedule.resident;
  std::erase_if(blocks, [](const Block* each) { return each->alive == 0; });
  return blocks;
}

void sync_group(Scope scope, Position where) {
  if (scope == Scope::block) {
    sync_block(Operation::syncthreads, 0, where);
    return;
  }
  const Operation operation = scope == Scope::cluster ? Operation::cluster_sync : Operation::grid_sync;
  const InRuntime inside;
  demand_group(scope, name_of(operation), where);
  arrive_at(operation, 0, where);
  const unsigned phase = barrier_of(*running.thread->block, scope).phase;
  arrive(scope);
  wait_for_phase(scope, phase);
  running.thread->operation = Operation::none;
}

void arrive_at_group(Scope scope, Position where) {
  const InRuntime inside;
  demand_group(scope, "barrier_arrive", where);
  Thread& thread = *running.thread;
  thread.has_arrived[int(scope)] = true;
  thread.arrived_phase[int(scope)] = barrier_of(*thread.block, scope).phase;
  thread.arrived_where[int(scope)] = where;
  on_arrival(thread, scope);
  arrive(scope);
}

void wait_at_group(Scope scope, Position where) {
  const InRuntime inside;
  Thread& thread = *running.thread;
  if (!thread.has_arrived[int(scope)])
    refuse_group_call(
        "not arrived",
        std::string("waits at the barrier of the ") + name_of(scope) + " without having arrived there",
        "barrier_arrive must come before barrier_wait, once for each", where);
  arrive_at(wait_operation(scope), 0, where);
  wait_for_phase(scope, thread.arrived_phase[int(scope)]);
  thread.has_arrived[int(scope)] = false;
  thread.operation = Operation::none;
  on_wait();
}

void drop_from_group_barriers(Thread& thread) {
  Block& block = *thread.block;
  Schedule& schedule = running.launch->schedule;
  schedule.ended_by_checks += block.alive == 0 && block.returned == 0;
  if (!schedule.has_group_barriers) return;
  for (const Scope scope : {Scope::block, Scope::cluster, Scope::grid}) {
    GroupBarrier& barrier = barrier_of(block, scope);
    if (std::exchange(thread.has_arrived[int(scope)], false)) {
      add_missed_wait(thread, scope);
      block.arrived[int(scope)] -= thread.arrived_phase[int(scope)] == barrier.phase;
    }
    if (block.alive > 0) {
      count_block_if_all_arrived(block, scope);
      continue;
    }
    barrier.arrived -= std::exchange(block.has_arrived[int(scope)], false);
    complete_if_all_arrived(block, scope);
  }
}

}  // namespace emulator
