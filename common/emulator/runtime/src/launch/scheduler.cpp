// A fiber runs the threads of a block one after another as plain calls. Only a thread that waits keeps the
// fiber; the next thread uses another. So a kernel that never waits runs on one fiber, without switches.
#include "scheduler.h"

#include <algorithm>
#include <string>
#include <utility>

#include "../device/builtin_variables.h"
#include "../races/shadow_events.h"
#include "../synchronisation/barrier_check.h"
#include "../synchronisation/collectives.h"
#include "emulator/kernel_api.h"
#include "failure.h"
#include "launch_limits.h"
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

unsigned cluster_size() { return schedule().cluster.x * schedule().cluster.y * schedule().cluster.z; }

Block& open_block(uint3 index) {
  auto& spare = spare_blocks();
  if (spare.empty()) spare.push_back(new Block);
  Block& block = *spare.back();
  schedule().resident.push_back(&block);
  spare.pop_back();

  const unsigned threads = schedule().threads_per_block;
  const dim3 grid = running.launch->configuration.grid;
  block.number = index.x + std::uint64_t(grid.x) * (index.y + std::uint64_t(grid.y) * index.z);
  block.index = index;
  block.threads.resize(threads);
  reset_warps(block);
  block.started = 0;
  block.alive = threads;
  block.returned = block.returned_before = 0;
  block.is_diverged = false;
  block.at_barrier.clear();
  block.votes = {};
  block.barrier = {};
  std::fill_n(block.arrived, kScopes, 0);
  std::fill_n(block.has_arrived, kScopes, false);
  clear_shared(block);
  return block;
}

// The blocks of a cluster run at the same time.
void open_cluster() {
  const dim3 size = schedule().cluster, grid = running.launch->configuration.grid;
  const dim3 clusters(grid.x / size.x, grid.y / size.y, grid.z / size.z);
  const unsigned blocks = cluster_size();
  const uint3 at = index_at(clusters, shuffled(schedule().opened, schedule().blocks / blocks, 0));
  const auto cluster = std::make_shared<Cluster>();
  schedule().opened++;
  cluster->alive = blocks;
  cluster->blocks.reserve(blocks);
  for (unsigned rank = 0; rank < blocks; rank++) {
    const uint3 inside = index_at(size, rank);
    Block& block = open_block({at.x * size.x + inside.x, at.y * size.y + inside.y, at.z * size.z + inside.z});
    block.cluster = cluster;
    block.cluster_rank = rank;
    cluster->blocks.push_back(&block);
    shadow_block_begins(block);
  }
  for (unsigned n = 0; n < blocks; n++)
    schedule().starting.push_back(cluster->blocks[shuffled(n, blocks, schedule().opened)]);
}

// The shared memory of a cluster's blocks stays until all of them have ended.
void close_cluster(Cluster& cluster) {
  auto& resident = schedule().resident;
  for (Block* block : cluster.blocks) {
    resident.erase(std::find(resident.begin(), resident.end(), block));
    spare_blocks().push_back(block);
  }
}

// The kernel declares clusters that the launch did not: its blocks start again, now in clusters. No thread
// has done anything yet, because the declaration is the first statement of the kernel.
void restart_in_clusters() {
  Schedule& all = schedule();
  abandon_schedule();
  all.resident.clear();
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
  Cluster& cluster = *thread.block->cluster;
  if (thread.block->alive == 0 && --cluster.alive == 0) close_cluster(cluster);
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

bool can_open_cluster() {
  const std::size_t resident = schedule().resident.size();
  return schedule().opened < schedule().blocks / cluster_size() &&
         (resident == 0 || resident + cluster_size() <= schedule().most_resident);
}

// One step of the launch; false when nothing is left to do.
bool step_grid() {
  Schedule& all = schedule();
  if (running.stop_wanted) {
    stop_launch();
  } else if (!all.ready.empty()) {
    resume_next_ready();
  } else if (all.declared_cluster.x) {
    restart_in_clusters();
  } else if (!all.starting.empty()) {
    Fiber::take().resume();
  } else if (!all.at_activemask.empty()) {
    release_activemask(all.at_activemask);
    all.at_activemask.clear();
  } else if (can_open_cluster()) {
    open_cluster();
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
  while (!has_failed() && !launch.refusal && !launch.schedule.is_deadlocked)
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
