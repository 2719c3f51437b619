#include "async_copies.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <map>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "../races/access_sites.h"
#include "../races/race_text.h"
#include "../report/report.h"
#include "../state/events.h"
#include "../synchronisation/barrier_objects.h"
#include "accesses.h"
#include "emulator/async.h"

namespace emulator {

struct AsyncCopies {
  struct Copy {
    std::size_t bytes;
    const Thread* thread;
    const void* pc;
  };
  struct OfThread {
    std::vector<std::byte*> open;                 // not committed
    std::deque<std::vector<std::byte*>> batches;  // oldest first
  };
  struct OfPhase {
    const void* barrier;
    std::uint32_t phase;
    std::vector<std::byte*> copies;
  };
  std::map<std::byte*, Copy> under_way;  // by destination
  std::unordered_map<const Thread*, OfThread> of_threads;
  std::vector<OfPhase> of_phases;
  const void* beginning = nullptr;  // the destination whose copy begins now, which is not an early access
};

namespace {

AsyncCopies& copies() {
  auto& all = running.launch->copies;
  if (!all) all = std::make_shared<AsyncCopies>();
  return *all;
}

AsyncCopies::OfThread* copies_of_thread() {
  if (!running.thread) throw std::runtime_error("an asynchronous copy was used outside of a kernel");
  const auto& all = running.launch->copies;
  if (!all) return nullptr;
  const auto found = all->of_threads.find(running.thread);
  return found == all->of_threads.end() ? nullptr : &found->second;
}

// The copies of the running thread have arrived: from now on it has written the memory.
void finish(const std::vector<std::byte*>& batch) {
  for (std::byte* to : batch) {
    const auto found = copies().under_way.find(to);
    if (found == copies().under_way.end()) continue;
    const AsyncCopies::Copy copy = found->second;
    copies().under_way.erase(found);
    record_arrival(to, copy.bytes, copy.pc);
  }
}

void finish_oldest_batch(AsyncCopies::OfThread& own) {
  const auto batch = std::move(own.batches.front());
  own.batches.pop_front();
  finish(batch);
}

std::vector<std::byte*>& batch_of(const void* barrier, std::uint32_t phase) {
  for (auto& one : copies().of_phases)
    if (one.barrier == barrier && one.phase == phase) return one.copies;
  return copies().of_phases.emplace_back(AsyncCopies::OfPhase{barrier, phase, {}}).copies;
}

}  // namespace

__attribute__((noinline)) void begin_copy(void* to, const void* from, std::size_t bytes, std::size_t zeros,
                                          AsyncBarrier* barrier) {
  const void* pc = __builtin_return_address(0);
  if (!bytes) return;
  const std::size_t copied = bytes - std::min(zeros, bytes);
  std::byte* const rest = static_cast<std::byte*>(to) + copied;
  if (copied > 0) check_copy(to, from, copied, pc);
  if (copied < bytes) check_copy(rest, nullptr, bytes - copied, pc);
  std::memcpy(to, from, copied);
  std::memset(rest, 0, bytes - copied);
  const InRuntime inside;
  if (!is_on(Check::races)) return;
  auto* destination = static_cast<std::byte*>(to);
  copies().under_way.insert_or_assign(
      destination, AsyncCopies::Copy{bytes, running.thread, static_cast<const char*>(pc) - 1});
  auto& batch =
      barrier ? batch_of(barrier, current_phase_of(barrier)) : copies().of_threads[running.thread].open;
  batch.push_back(destination);
}

void commit_copies() {
  const InRuntime inside;
  if (AsyncCopies::OfThread* own = copies_of_thread()) own->batches.push_back(std::move(own->open));
}

void wait_for_copies(std::size_t batches) {
  const InRuntime inside;
  AsyncCopies::OfThread* own = copies_of_thread();
  while (own && own->batches.size() > batches) finish_oldest_batch(*own);
}

void wait_for_oldest_copies() {
  const InRuntime inside;
  AsyncCopies::OfThread* own = copies_of_thread();
  if (own && !own->batches.empty()) finish_oldest_batch(*own);
}

// The thread that issued a copy had arrived at the barrier behind it. So every thread that waits there knows
// of its writes.
void on_phase_complete(const void* barrier, std::uint32_t phase) {
  if (!running.launch->copies) return;
  std::erase_if(copies().of_phases, [&](const AsyncCopies::OfPhase& one) {
    if (one.barrier != barrier || one.phase != phase) return false;
    for (std::byte* to : one.copies) copies().under_way.erase(to);
    return true;
  });
}

void drop_copies(Thread& thread) {
  AsyncCopies& all = copies();
  all.of_threads.erase(&thread);
  if (!all.under_way.empty())
    std::erase_if(all.under_way, [&](const auto& one) { return one.second.thread == &thread; });
}

void check_arrived(const Access& access) {
  AsyncCopies& all = copies();
  auto next = all.under_way.lower_bound(access.address + access.size);
  if (next == all.under_way.begin()) return;
  const auto& [begin, copy] = *--next;
  if (begin + copy.bytes <= access.address) return;
  const Site site = site_of(access),
             earlier =
                 site_of({begin, copy.bytes, true, AccessKind::plain, copy.pc, nullptr, nullptr, nullptr});
  const Cause cause{Check::races, "copy under way", line_of(site), memory_of(access)};
  if (!is_new(cause)) return;
  line_of(earlier);
  add(cause, {false,
              std::string(access.is_write ? "writes " : "reads ") + element_at(access, access.address) +
                  " before the asynchronous copy to it has arrived",
              info_of(site).text,
              "the copy began in " + info_of(earlier).text +
                  ": wait for it first, and then for the other threads that copy"});
}

}  // namespace emulator
