// A fiber runs the threads of a block one after another as plain calls. Only a thread that waits keeps the
// fiber; the next thread uses another. So a kernel that never waits runs on one fiber, without switches.
#include "scheduler.h"

#include <algorithm>
#include <string>

#include "../device/builtin_variables.h"
#include "../races/shadow_events.h"
#include "../synchronisation/barrier_check.h"
#include "../synchronisation/collectives.h"
#include "failure.h"
#include "shared_memory.h"
#include "thread_order.h"

namespace emulator {

namespace {

constexpr int kMostPolls = 256;  // polls after which a thread gives others a turn

// Blocks are kept from launch to launch to reuse their memory.
std::vector<Block*>& spare_blocks() {
  static auto& blocks = *new std::vector<Block*>;
  return blocks;
}

Schedule& schedule() { return running.launch->schedule; }

void reset_warps(Block& block) {
  const auto threads = unsigned(block.threads.size());
  block.warps.resize((threads + 31) / 32);
  for (unsigned w = 0; w < block.warps.size(); w++) {
    const unsigned lanes = std::min(32u, threads - 32 * w);
    block.warps[w].alive = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    block.warps[w].pending = 0;
  }
}

void open_block() {
  auto& spare = spare_blocks();
  if (spare.empty()) spare.push_back(new Block);
  Block& block = *spare.back();
  schedule().resident.push_back(&block);
  spare.pop_back();

  const unsigned threads = schedule().threads_per_block;
  block.number = shuffled(schedule().opened++, schedule().blocks, 0);
  block.index = index_at(running.launch->configuration.grid, block.number);
  block.threads.resize(threads);
  reset_warps(block);
  block.started = 0;
  block.alive = threads;
  block.returned = block.returned_before = 0;
  block.is_diverged = false;
  block.at_barrier.clear();
  block.votes = {};
  clear_shared(block);
  schedule().starting = &block;
  shadow_block_begins(block);
}

void close_block(Block* block) {
  auto& resident = schedule().resident;
  resident.erase(std::find(resident.begin(), resident.end(), block));
  spare_blocks().push_back(block);
}

Thread* start_next_thread() {
  Block* block = schedule().starting;
  if (!block) return nullptr;
  const auto rank = unsigned(shuffled(block->started++, schedule().threads_per_block, block->number + 1));
  if (block->started == schedule().threads_per_block) schedule().starting = nullptr;
  Thread& thread = block->threads[rank];
  thread.index = index_at(running.launch->configuration.block, rank);
  thread.rank = rank;
  thread.block = block;
  thread.operation = Operation::none;
  thread.was_ended = false;
  thread.stray.lane = Stray::kNoLane;
  return &thread;
}

void run_kernel() {
  std::string thrown;
  try {
    running.in_kernel = true;
    running.launch->body(running.launch->closure);
    running.in_kernel = false;
    return;
  } catch (const std::exception& error) {
    running.in_kernel = false;
    thrown = error.what();
  } catch (...) {
    running.in_kernel = false;
    thrown = "an exception that is not a std::exception";
  }
  static char text[4096];  // the string's memory would be lost with this stack
  thrown.copy(text, sizeof(text) - 1);
  text[std::min(thrown.size(), sizeof(text) - 1)] = 0;
  thrown = std::string();
  abandon("threw an exception: %s", text);
}

void switch_to(Thread* thread) {
  running.thread = thread;
  polls_left = kMostPolls;
  set_thread(thread->index, thread->block->index);
}

void leave_block(Thread& thread) {
  drop_from_barriers(thread);
  if (thread.block->alive == 0) close_block(thread.block);
  running.thread = nullptr;
}

// The function that every fiber runs.
void run_threads() {
  for (;;) {
    while (Thread* thread = start_next_thread()) {
      switch_to(thread);
      run_kernel();
      leave_block(*running.thread);
    }
    Fiber::running()->give_back();
    Fiber::suspend();
  }
}

void resume(Thread* thread) {
  switch_to(thread);
  thread->fiber->resume();
}

void resume_next_ready() {
  auto& ready = schedule().ready;
  std::swap(ready.front(), ready[pick(ready.size())]);
  Thread* thread = ready.front();
  ready.pop_front();
  resume(thread);
}

bool can_open_block() {
  return schedule().opened < schedule().blocks && schedule().resident.size() < schedule().most_resident;
}

// One step of the launch; false when nothing is left to do.
bool step_grid() {
  Schedule& all = schedule();
  if (running.stop_wanted) {
    stop_launch();
  } else if (!all.ready.empty()) {
    resume_next_ready();
  } else if (all.starting) {
    Fiber::take().resume();
  } else if (!all.at_activemask.empty()) {
    release_activemask(all.at_activemask);
    all.at_activemask.clear();
  } else if (can_open_block()) {
    open_block();
  } else if (!all.yielded.empty()) {
    all.ready.swap(all.yielded);
  } else if (!all.resident.empty()) {
    running.thread = nullptr;
    all.is_deadlocked = true;
    add_deadlock();
  } else {
    return false;
  }
  return true;
}

}  // namespace

int polls_left = kMostPolls;

void run_grid() {
  const LaunchState& launch = *running.launch;
  Fiber::set_work(run_threads);
  while (!has_failed() && !launch.shared.refused_bytes && !launch.schedule.is_deadlocked)
    if (!step_grid()) return;
}

void abandon_schedule() {
  Fiber::abandon_all();
  auto& resident = schedule().resident;
  spare_blocks().insert(spare_blocks().end(), resident.begin(), resident.end());
}

void make_ready(Thread* thread) { schedule().ready.push_back(thread); }

void arrive_at(Operation operation, std::uint32_t mask, Position where) {
  running.thread->operation = operation;
  running.thread->mask = mask;
  running.thread->where = where;
}

void wait() {
  running.thread->fiber = Fiber::running();
  Fiber::suspend();
}

void wait_at_activemask() {
  schedule().at_activemask.push_back(running.thread);
  wait();
}

void yield_thread() {
  if (!running.thread) return;
  const InRuntime inside;
  arrive_at(Operation::yield, 0, Position{});
  schedule().yielded.push_back(running.thread);
  wait();
  running.thread->operation = Operation::none;
}

void end_thread() {
  running.in_kernel = false;
  set_error(cudaErrorIllegalAddress);
  Thread& thread = *running.thread;
  thread.was_ended = true;
  thread.operation = Operation::none;
  leave_block(thread);
  Fiber::drop();
}

}  // namespace emulator
