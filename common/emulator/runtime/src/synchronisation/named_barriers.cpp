#include "named_barriers.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../report/report.h"
#include "../scheduler/failure.h"
#include "../scheduler/scheduler.h"
#include "../state/events.h"
#include "barrier_check.h"
#include "emulator/named_barriers.h"
#include "group_barriers.h"

namespace emulator {

struct NamedBarrier {
  unsigned expected = 0, arrived = 0;
  std::vector<Thread*> waiting;
  std::vector<std::byte> values;  // that the threads of a tile exchange
};
struct NamedBarriers {
  // By the number of the block in the grid, and the number of the barrier or `number_of_tile`.
  std::map<std::pair<std::uint64_t, unsigned>, NamedBarrier> all;
};

namespace {

constexpr unsigned kNamedBarriers = 16;

unsigned threads_of_block() { return unsigned(running.thread->block->threads.size()); }

constexpr unsigned kMostTiles = 32;  // of one size, in a block
static_assert(kMostTiles > 1024 / 64 && kNamedBarriers <= 64 * kMostTiles);
unsigned number_of_tile(unsigned size) { return size * kMostTiles + rank_in_block() / size; }

std::string name_of_barrier(unsigned number) {
  if (number < kNamedBarriers) return "barrier " + std::to_string(number);
  return "the barrier of tile " + std::to_string(number % kMostTiles) + " of " +
         std::to_string(number / kMostTiles) + " threads";
}

NamedBarrier& barrier_with(unsigned number) {
  auto& all = running.launch->named_barriers;
  if (!all) all = std::make_shared<NamedBarriers>();
  return all->all[{running.thread->block->number, number}];
}

NamedBarrier& find_barrier(unsigned number, unsigned count, Position where) {
  if (number >= kNamedBarriers || count % 32 != 0)
    refuse_group_call(
        "no such barrier", "uses " + name_of_barrier(number) + " with " + std::to_string(count) + " threads",
        "a block has the barriers 0 to 15, and the number of threads is a multiple of 32", where);
  NamedBarrier& barrier = barrier_with(number);
  if (barrier.arrived && barrier.expected != count)
    refuse_group_call("different counts",
                      "uses " + name_of_barrier(number) + " with " + std::to_string(count) +
                          " threads, but others wait there for " + std::to_string(barrier.expected),
                      "all threads that meet at a barrier must use the same number of threads", where);
  barrier.expected = count;
  return barrier;
}

// Whether this arrival completes the barrier.
bool count_arrival(NamedBarrier& barrier) {
  fence();
  on_release(&barrier.arrived, sizeof(barrier.arrived));
  if (++barrier.arrived < barrier.expected) return false;
  barrier.arrived = 0;
  for (Thread* thread : std::exchange(barrier.waiting, {})) make_ready(thread);
  return true;
}

void arrive_and_wait(NamedBarrier& barrier, Operation operation, Position where) {
  arrive_at(operation, 0, where);
  if (!count_arrival(barrier)) {
    barrier.waiting.push_back(running.thread);
    wait();
  }
  running.thread->operation = Operation::none;
  on_acquire(&barrier.arrived, sizeof(barrier.arrived));
}

NamedBarrier& barrier_of_tile(unsigned size) {
  if (!running.thread) abandon("a function of a tile was called outside of a kernel");
  NamedBarrier& barrier = barrier_with(number_of_tile(size));
  barrier.expected = std::min(size, threads_of_block() - rank_in_block() / size * size);
  return barrier;
}

}  // namespace

void sync_named_barrier(unsigned number, unsigned count, Position where) {
  if (!running.thread) abandon("bar.sync was executed outside of a kernel");
  if (number == 0 && (count == 0 || count == threads_of_block())) {
    sync_block(Operation::syncthreads, 0, where);
    return;
  }
  const InRuntime inside;
  arrive_and_wait(find_barrier(number, count ? count : threads_of_block(), where), Operation::bar_sync,
                  where);
}

void arrive_at_named_barrier(unsigned number, unsigned count, Position where) {
  if (!running.thread) abandon("bar.arrive was executed outside of a kernel");
  const InRuntime inside;
  count_arrival(find_barrier(number, count, where));
}

unsigned rank_in_block() { return unsigned(running.thread - running.thread->block->threads.data()); }

void sync_tile(unsigned size, Position where) {
  const InRuntime inside;
  arrive_and_wait(barrier_of_tile(size), Operation::tile_sync, where);
}

void exchange_in_tile(unsigned size, unsigned source, const void* given, void* taken, std::size_t bytes,
                      Position where) {
  const InRuntime inside;
  NamedBarrier& barrier = barrier_of_tile(size);
  if (barrier.values.size() < size * bytes) barrier.values.resize(size * bytes);
  std::memcpy(barrier.values.data() + rank_in_block() % size * bytes, given, bytes);
  arrive_and_wait(barrier, Operation::tile_sync, where);
  std::memcpy(taken, barrier.values.data() + source % size * bytes, bytes);
  arrive_and_wait(barrier, Operation::tile_sync, where);  // before the next exchange
}

void check_source_in_tile(unsigned size, unsigned source, Position where) {
  unsigned first;
  exchange_in_tile(size, 0, &source, &first, sizeof(first), where);
  if (first == source) return;
  const Cause cause = cause_at("different sources", where);
  const AboutThread about(running.thread);
  if (is_new(cause))
    add(cause, {false,
                "reads from rank " + std::to_string(source) +
                    " of its tile with shfl, but rank 0 reads from rank " + std::to_string(first),
                at(where), "in a tile of more than 32 threads, all of them must read from the same rank"});
}

bool add_deadlock_of_named_barriers() {
  if (!running.launch->named_barriers) return false;
  for (const auto& [key, barrier] : running.launch->named_barriers->all) {
    if (barrier.waiting.empty()) continue;
    const Thread& first = *barrier.waiting.front();
    const Cause cause = cause_at("named barrier", first.where);
    const AboutThread none(nullptr);
    if (is_new(cause))
      add(cause, {false,
                  "threads wait forever at " + name_of_barrier(key.second) + " for " +
                      std::to_string(barrier.expected - barrier.arrived) + " others",
                  at(first.where),
                  "it expects " + std::to_string(barrier.expected) + " threads; " +
                      std::to_string(barrier.waiting.size()) + " wait, first block " +
                      text_of(first.block->index) + ", thread " + text_of(first.index)});
    return true;
  }
  return false;
}

}  // namespace emulator
