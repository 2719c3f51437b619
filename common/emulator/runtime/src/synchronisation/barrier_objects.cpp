// Barriers that are objects in memory. A phase completes when as many arrivals were counted as were expected.
// An arrival is a release, and a wait that ends is an acquisition, of the object's first word.
#include "barrier_objects.h"

#include <algorithm>
#include <string>
#include <unordered_map>
#include <vector>

#include "../report/report.h"
#include "../scheduler/failure.h"
#include "../scheduler/scheduler.h"
#include "../state/events.h"
#include "barrier_check.h"
#include "emulator/async.h"
#include "emulator/atomics.h"
#include "emulator/groups.h"
#include "group_barriers.h"

namespace emulator {

struct BarrierObject {
  std::uint32_t expected, missing;  // arrivals of each phase, and still of this one
  std::uint32_t phase = 0;
  std::int64_t bytes = 0;  // that are still expected in this phase
  bool is_shared = true;   // in shared memory
  std::vector<Thread*> waiting;
};
struct BarrierObjects {
  std::unordered_map<const void*, BarrierObject> all;  // by address
};

namespace {

BarrierObjects& objects() {
  auto& all = running.launch->barriers;
  if (!all) all = std::make_shared<BarrierObjects>();
  return *all;
}

BarrierObject& find_object(const void* barrier, const char* verb, Position where) {
  const auto found = objects().all.find(barrier);
  if (found == objects().all.end())
    refuse_group_call("barrier without init", std::string(verb) + " at a barrier that was not initialised",
                      "one thread must call init(&barrier, count), and the block must wait for it", where);
  return found->second;
}

void complete_phase(BarrierObject& object) {
  if (object.missing || object.bytes) return;
  object.phase++;
  object.missing = object.expected;
  for (Thread* thread : object.waiting) make_ready(thread);
  object.waiting.clear();
}

}  // namespace

__attribute__((noinline)) void init_barrier(AsyncBarrier* barrier, std::uint32_t expected, Position where) {
  check_copy(barrier, nullptr, sizeof(AsyncBarrier), __builtin_return_address(0));
  const InRuntime inside;
  if (!running.thread) abandon("initialises a barrier outside of a kernel, in %s", line_at(where).c_str());
  objects().all.insert_or_assign(barrier, BarrierObject{expected, expected, 0, 0, is_shared(barrier), {}});
}

bool has_global_barrier_objects() {
  const auto is_global = [](const auto& entry) { return !entry.second.is_shared; };
  const auto& all = running.launch->barriers;
  return all && std::any_of(all->all.begin(), all->all.end(), is_global);
}

void drop_barrier(AsyncBarrier* barrier) {
  const InRuntime inside;
  if (running.thread && running.launch->barriers) objects().all.erase(barrier);
}

__attribute__((noinline)) std::uint32_t arrive_at_barrier(AsyncBarrier* barrier, std::uint32_t arrivals,
                                                          bool drops, Position where) {
  fence();
  check_atomic_store(&barrier->words[0], sizeof(barrier->words[0]), __builtin_return_address(0));
  const InRuntime inside;
  BarrierObject& object = find_object(barrier, "arrives", where);
  if (arrivals > object.missing)
    refuse_group_call("too many arrivals", "arrives at a barrier more often than it expects in one phase",
                      "it expects " + std::to_string(object.expected) + " arrivals", where);
  const std::uint32_t phase = object.phase;
  object.expected -= drops;
  object.missing -= arrivals;
  complete_phase(object);
  return phase;
}

__attribute__((noinline)) void expect_bytes(AsyncBarrier* barrier, std::int64_t bytes, Position where) {
  fence();
  check_atomic_store(&barrier->words[0], sizeof(barrier->words[0]), __builtin_return_address(0));
  const InRuntime inside;
  BarrierObject& object = find_object(barrier, bytes < 0 ? "completes bytes" : "expects bytes", where);
  object.bytes += bytes;
  if (bytes < 0) complete_phase(object);
}

std::uint32_t current_phase_of(const void* barrier) {
  const auto found = objects().all.find(barrier);
  return found == objects().all.end() ? 0 : found->second.phase;
}

std::uint32_t phase_with_parity(AsyncBarrier* barrier, bool parity, Position where) {
  const InRuntime inside;
  const std::uint32_t phase = find_object(barrier, "waits", where).phase;
  return phase % 2 == parity ? phase : phase - 1;
}

__attribute__((noinline)) bool is_phase_complete(AsyncBarrier* barrier, std::uint32_t phase, Position where) {
  count_poll();
  {
    const InRuntime inside;
    if (find_object(barrier, "waits", where).phase == phase) return false;
  }
  check_atomic_load(&barrier->words[0], sizeof(barrier->words[0]), __builtin_return_address(0));
  const InRuntime inside;
  on_phase_complete(barrier, phase);
  return true;
}

__attribute__((noinline)) void wait_for_phase_of(AsyncBarrier* barrier, std::uint32_t phase, Position where) {
  {
    const InRuntime inside;
    BarrierObject& object = find_object(barrier, "waits", where);
    if (object.phase == phase) {
      arrive_at(Operation::object_wait, 0, where);
      object.waiting.push_back(running.thread);
      wait();
      running.thread->operation = Operation::none;
    }
  }
  check_atomic_load(&barrier->words[0], sizeof(barrier->words[0]), __builtin_return_address(0));
  const InRuntime inside;
  on_phase_complete(barrier, phase);
}

bool add_deadlock_of_objects() {
  if (!running.launch->barriers) return false;
  for (const auto& [barrier, object] : objects().all) {
    if (object.waiting.empty()) continue;
    const Thread& first = *object.waiting.front();
    const Cause cause = cause_at("phase never completes", first.where);
    const AboutThread none(nullptr);
    if (is_new(cause))
      add(cause,
          {false, "threads wait forever for a phase of a barrier that does not complete", at(first.where),
           "the barrier expects " + std::to_string(object.expected) + " arrivals, of which " +
               std::to_string(object.missing) + " are missing; " + std::to_string(object.waiting.size()) +
               " threads wait, first block " + text_of(first.block->index) + ", thread " +
               text_of(first.index)});
    return true;
  }
  return false;
}

}  // namespace emulator
