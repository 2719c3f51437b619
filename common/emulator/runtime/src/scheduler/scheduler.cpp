// A fiber runs the threads of a block one after another as plain calls. Only a thread that waits keeps the
// fiber; the next thread uses another. So a kernel that never waits runs on one fiber, without switches.
#include "scheduler.h"

#include <algorithm>
#include <new>
#include <string>
#include <utility>

#include "../report/launch_limits.h"
#include "../state/builtin_variables.h"
#include "../state/events.h"
#include "../state/thread_order.h"
#include "blocks.h"
#include "cores.h"
#include "emulator/kernel_api.h"
#include "failure.h"
#include "progress.h"

namespace emulator {

namespace {

constexpr int kMostPolls = 256;  // polls after which a thread gives others a turn

Schedule& schedule() { return running.launch->schedule; }

// The kernel declares clusters that the launch did not: its blocks start again, now in clusters. No thread
// has done anything yet, because the declaration is the first statement of the kernel.
void restart_in_clusters() {
  Schedule& all = schedule();
  abandon_schedule();
  all.starting.clear();
  all.opened = 0;
  all.cluster = std::exchange(all.declared_cluster, dim3(0, 0, 0));
  Configuration configuration = running.launch->configuration;
  configuration.cluster = all.cluster;
  configuration.allows_any_cluster_size = allows_any_cluster_size(nullptr);
  running.launch->refusal = refusal_of_clusters(configuration, device());
}

Thread* start_next_thread() {
  if (schedule().starting.empty()) return nullptr;
  Block* block = schedule().starting.front();
  const auto rank = unsigned(shuffled(block->started++, schedule().threads_per_block, block->number + 1));
  if (block->started == schedule().threads_per_block) schedule().starting.pop_front();
  Thread& thread = block->threads[rank];
  thread.index = index_at(running.launch->configuration.block, rank);
  thread.rank = rank;
  thread.block = block;
  thread.operation = Operation::none;
  thread.was_ended = false;
  thread.last_error = 0;
  thread.stray.lane = Stray::kNoLane;
  std::fill_n(thread.has_arrived, kScopes, false);
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
  take_turn();
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
  if (thread.block->alive == 0) close_block(*thread.block);
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

Thread* take_ready() {
  auto& ready = schedule().ready;
  std::swap(ready.front(), ready[pick(ready.size())]);
  Thread* thread = ready.front();
  ready.pop_front();
  return thread;
}

bool has_room_for_cluster() {
  const Schedule& all = schedule();
  return all.resident.empty() || all.resident.size() + all.cluster_size() <= all.most_resident;
}

bool open_next_cluster() {
  if (!has_room_for_cluster()) return false;
  const auto number = next_cluster();
  if (number) open_cluster(*number);
  return number.has_value();
}

// One step of the launch; false when nothing is left to do.
bool step_grid() {
  Schedule& all = schedule();
  if (running.stop_wanted) {
    stop_launch();
  } else if (!all.ready.empty()) {
    resume(take_ready());
  } else if (all.declared_cluster.x) {
    restart_in_clusters();
  } else if (!all.starting.empty()) {
    Fiber::take().resume();
  } else if (!all.at_activemask.empty()) {
    release_activemask(all.at_activemask);
  } else if (open_next_cluster()) {
    // its threads start in the next steps
  } else if (!all.yielded.empty()) {
    give_up_order();
    all.ready.swap(all.yielded);
  } else if (!all.resident.empty()) {
    wait_for_turn();
    running.thread = nullptr;
    all.is_deadlocked = true;
    add_deadlock();
  } else {
    return false;
  }
  return true;
}

bool cannot_continue() {
  const LaunchState& launch = *running.launch;
  return has_failed() || launch.refusal || launch.schedule.is_deadlocked || is_stopped();
}

void run_blocks() {
  try {
    while (!cannot_continue() && step_grid()) {
      if (can_divide_launch()) return divide_launch(run_blocks);
      if (is_launching_core()) show_progress();
    }
  } catch (const std::bad_alloc&) {
    wait_for_turn();
    set_failure("has %zu threads that wait at the same time: there is no memory for the stack of another",
                Fiber::count());
  }
}

}  // namespace

EMULATOR_OF_CORE int polls_left = kMostPolls;

void run_grid() {
  Fiber::set_work(run_threads);
  run_blocks();
}

void abandon_schedule() {
  Fiber::abandon_all();
  keep_blocks();
}

void make_ready(Thread* thread) { schedule().ready.push_back(thread); }

void arrive_at(Operation operation, std::uint32_t mask, Position where) {
  running.thread->operation = operation;
  running.thread->mask = mask;
  running.thread->where = where;
}

void wait() {
  running.thread->fiber = Fiber::running();
  if (running.stop_wanted || schedule().ready.empty()) return Fiber::suspend();
  Thread* next = take_ready();
  switch_to(next);
  Fiber::switch_to(*next->fiber);
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
