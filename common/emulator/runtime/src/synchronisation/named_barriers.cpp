#include "named_barriers.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "../launch/failure.h"
#include "../memory/access.h"
#include "../ordering/happens_before.h"
#include "../ordering/release_acquire.h"
#include "../report/report.h"
#include "../scheduler/scheduler.h"
#include "barrier_check.h"
#include "emulator/named_barriers.h"
#include "group_barriers.h"

namespace emulator {

struct NamedBarrier {
  unsigned expected = 0, arrived = 0;
  std::vector<Thread*> waiting;
};
struct NamedBarriers {
  // By the number of the block in the grid and that of the barrier.
  std::map<std::pair<std::uint64_t, unsigned>, NamedBarrier> all;
};

namespace {

constexpr unsigned kNamedBarriers = 16;

unsigned threads_of_block() { return unsigned(running.thread->block->threads.size()); }

std::string name_of_barrier(unsigned number) { return "barrier " + std::to_string(number); }

NamedBarrier& find_barrier(unsigned number, unsigned count, Position where) {
  if (number >= kNamedBarriers || count % 32 != 0)
    refuse_group_call(
        "no such barrier", "uses " + name_of_barrier(number) + " with " + std::to_string(count) + " threads",
        "a block has the barriers 0 to 15, and the number of threads is a multiple of 32", where);
  auto& all = running.launch->named_barriers;
  if (!all) all = std::make_shared<NamedBarriers>();
  NamedBarrier& barrier = all->all[{running.thread->block->number, number}];
  if (barrier.arrived && barrier.expected != count)
    refuse_group_call("different counts",
                      "uses " + name_of_barrier(number) + " with " + std::to_string(count) +
                          " threads, but others wait there for " + std::to_string(barrier.expected),
                      "all threads that meet at a barrier must use the same number of threads", where);
  barrier.expected = count;
  return barrier;
}

// An arrival is a release, and the end of a wait is an acquisition, at an address of its own.
void order_by(NamedBarrier& barrier, bool is_arrival) {
  if (!is_on(Check::races) || !epoch_now()) return;
  record_synchronising({reinterpret_cast<std::byte*>(&barrier.arrived), sizeof(barrier.arrived), is_arrival,
                        AccessKind::is_volatile, nullptr, nullptr, nullptr, nullptr});
}

// Whether this arrival completes the barrier.
bool count_arrival(NamedBarrier& barrier) {
  fence();
  order_by(barrier, true);
  if (++barrier.arrived < barrier.expected) return false;
  barrier.arrived = 0;
  for (Thread* thread : std::exchange(barrier.waiting, {})) make_ready(thread);
  return true;
}

}  // namespace

void sync_named_barrier(unsigned number, unsigned count, Position where) {
  if (!running.thread) abandon("bar.sync was executed outside of a kernel");
  if (number == 0 && (count == 0 || count == threads_of_block())) {
    sync_block(Operation::syncthreads, 0, where);
    return;
  }
  const InRuntime inside;
  NamedBarrier& barrier = find_barrier(number, count ? count : threads_of_block(), where);
  arrive_at(Operation::bar_sync, 0, where);
  if (!count_arrival(barrier)) {
    barrier.waiting.push_back(running.thread);
    wait();
  }
  running.thread->operation = Operation::none;
  order_by(barrier, false);
}

void arrive_at_named_barrier(unsigned number, unsigned count, Position where) {
  if (!running.thread) abandon("bar.arrive was executed outside of a kernel");
  const InRuntime inside;
  count_arrival(find_barrier(number, count, where));
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
