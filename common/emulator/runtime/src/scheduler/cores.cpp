#include "cores.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "../memory/shared_memory.h"
#include "../report/report.h"
#include "../state/events.h"
#include "../state/settings.h"
#include "../state/thread_order.h"
#include "failure.h"
#include "scheduler.h"
#include "signals.h"

namespace emulator {

EMULATOR_OF_CORE bool needs_turn = false;

namespace {

constexpr std::uint64_t kNone = ~std::uint64_t(0);
constexpr auto kTellAgainAfter =
    std::chrono::milliseconds(10);  // until a core that must stop is told so again

// The part of a core in the launch that is divided.
struct Part {
  pthread_t thread;
  bool is_asked = false, is_at_work = false;  // asked to help, until it begins
  std::uint64_t cluster = kNone;              // that it runs
  LaunchState* launch = nullptr;
};

// All cores but the launching one wait for work between launches.
struct Division {
  std::mutex mutex;
  std::condition_variable has_work, has_ended, has_turn;
  pid_t process = 0;                         // the cores of a parent do not exist in its child
  std::vector<std::unique_ptr<Part>> parts;  // that of the launching core is the first
  // Of the launch:
  std::atomic<bool> is_under_way = false, is_ordered = false, is_stopped = false;
  std::uint64_t next = 0, clusters = 0;
  void (*run_blocks)() = nullptr;
  Thread* failed = nullptr;         // on another core than the launching one
  std::optional<LaunchState> part;  // as each of the other cores begins it
};
Division& division() {
  static auto& one = *new Division;
  return one;
}

EMULATOR_OF_CORE Part* own_part = nullptr;

std::size_t cores() {
  const char* setting = setting_of("EMULATOR_CORES");
  if (!setting || !*setting) {
    cpu_set_t set;
    return sched_getaffinity(0, sizeof(set), &set) == 0 ? std::size_t(CPU_COUNT(&set)) : 1;
  }
  char* end = nullptr;
  const long number = std::strtol(setting, &end, 10);
  if (*end || number < 1 || number > 1024)
    throw std::runtime_error("EMULATOR_CORES is \"" + std::string(setting) +
                             "\": it must be a number of cores from 1 to 1024");
  return std::size_t(number);
}

// The launch without the blocks that have started.
LaunchState part_of(const LaunchState& launch) {
  LaunchState part = launch;
  part.barriers = nullptr;
  part.named_barriers = nullptr;
  part.copies = nullptr;
  return part;
}

void begin_part(Part& part, LaunchState& launch) {
  own_part = &part;
  part.launch = &launch;
  running.launch = &launch;
  running.os_thread = part.thread;
  running.observes_accesses = false;
  running.stop_wanted = false;
}

void run_part(Part& part) {
  LaunchState launch = *division().part;
  begin_part(part, launch);
  division().run_blocks();
  Thread* const failed = has_failed_here() ? running.thread : nullptr;
  failure();  // is written here, where it happened
  abandon_schedule();
  needs_turn = false;
  running.launch = nullptr;
  running.thread = nullptr;

  Division& all = division();
  const std::lock_guard lock(all.mutex);
  const bool is_failed = has_failed() || launch.refusal;
  LaunchState& whole = *all.parts[0]->launch;
  if (!whole.refusal) whole.refusal = launch.refusal;
  if (whole.error == cudaSuccess) whole.error = launch.error;
  if (is_failed) all.is_stopped = true;
  part.cluster = kNone;
  if (failed) all.failed = failed;
  if (is_failed) pthread_kill(all.parts[0]->thread, stop_signal());
  part.is_at_work = false;
  all.has_turn.notify_all();
  all.has_ended.notify_all();
}

void work(Part& part) {
  part.thread = pthread_self();
  Division& all = division();
  for (;;) {
    std::unique_lock lock(all.mutex);
    all.has_work.wait(lock, [&] { return part.is_asked; });
    part.is_asked = false;
    part.is_at_work = true;
    lock.unlock();
    run_part(part);
  }
}

// If the process may not have another thread, fewer cores run the launch.
void start_cores(std::size_t count) {
  Division& all = division();
  if (all.process != getpid()) all.parts.clear();
  all.process = getpid();
  while (all.parts.size() < count) {
    auto part = std::make_unique<Part>();
    if (!all.parts.empty() && !start_core([&part = *part] { work(part); })) return;
    all.parts.push_back(std::move(part));
  }
}

// The time limit or Ctrl-C has stopped this core, or a part has failed: the others must not go on.
void stop_others(Division& all) {
  all.has_turn.notify_all();
  for (std::size_t i = 1; i < all.parts.size(); i++)
    if (all.parts[i]->is_at_work) pthread_kill(all.parts[i]->thread, stop_signal());
}

bool is_any_at_work(const Division& all) {
  return std::any_of(all.parts.begin(), all.parts.end(), [](const auto& part) { return part->is_at_work; });
}

bool has_own_turn(const Division& all) {
  return !all.is_ordered || std::all_of(all.parts.begin(), all.parts.end(),
                                        [](const auto& part) { return part->cluster >= own_part->cluster; });
}

}  // namespace

bool can_divide_launch() {
#ifdef EMULATOR_ALL_CORES
  const LaunchState& launch = *running.launch;
  const Schedule& schedule = launch.schedule;
  const bool has_first_ended = schedule.opened == 1 && schedule.resident.empty() && !division().is_under_way;
  return has_first_ended && !running.observes_accesses && !is_on(Check::launch) &&
         !launch.configuration.is_cooperative && schedule.blocks > 2 * schedule.cluster_size() &&
         !has_shuffled_order() && !has_global_barrier_objects() && cores() > 1;
#else
  return false;
#endif
}

void divide_launch(void (*run_blocks)()) {
  Division& all = division();
  LaunchState& launch = *running.launch;
  const std::uint64_t clusters = launch.schedule.blocks / launch.schedule.cluster_size();
  std::unique_lock lock(all.mutex);
  const std::size_t wanted = std::min<std::uint64_t>(cores(), clusters - 1);
  start_cores(wanted);
  const std::size_t count = std::min(wanted, all.parts.size());
  all.is_under_way = all.is_ordered = true;
  all.is_stopped = false;
  all.next = launch.schedule.opened;
  all.clusters = clusters;
  all.run_blocks = run_blocks;
  all.part = part_of(launch);
  all.failed = nullptr;
  all.parts[0]->thread = pthread_self();
  begin_part(*all.parts[0], launch);
  for (std::size_t i = 1; i < count; i++) all.parts[i]->is_asked = true;
  all.has_work.notify_all();
  lock.unlock();

  run_blocks();
  failure();
  lock.lock();
  if (has_failed() || launch.refusal) all.is_stopped = true;
  for (auto& part : all.parts) part->is_asked = false;
  while (is_any_at_work(all)) {
    if (all.is_stopped || running.stop_wanted) stop_others(all);
    all.has_ended.wait_for(lock, kTellAgainAfter);
  }
  if (!has_failed_here()) running.thread = all.failed;
  all.is_under_way = false;
  all.parts[0]->cluster = kNone;
  needs_turn = false;
}

bool is_stopped() { return division().is_under_way && division().is_stopped; }

bool is_launching_core() {
  const Division& all = division();
  return !all.is_under_way || own_part == all.parts[0].get();
}

std::optional<std::uint64_t> next_cluster() {
  Schedule& schedule = running.launch->schedule;
  Division& all = division();
  if (!all.is_under_way) {
    if (schedule.opened == schedule.blocks / schedule.cluster_size()) return std::nullopt;
    return schedule.opened++;
  }
  if (!schedule.resident.empty()) give_up_order();
  const std::lock_guard lock(all.mutex);
  if (all.next == all.clusters) return std::nullopt;
  own_part->cluster = all.next;
  needs_turn = all.is_ordered;
  schedule.opened = ++all.next;
  return own_part->cluster;
}

void end_cluster() {
  Division& all = division();
  if (!all.is_under_way) return;
  const std::lock_guard lock(all.mutex);
  own_part->cluster = kNone;
  needs_turn = false;
  all.has_turn.notify_all();
}

void give_up_order() {
  Division& all = division();
  if (!all.is_under_way || !all.is_ordered) return;
  const std::lock_guard lock(all.mutex);
  all.is_ordered = false;
  all.has_turn.notify_all();
}

bool wait_for_turn() {
  if (!needs_turn) return true;
  Division& all = division();
  std::unique_lock lock(all.mutex);
  bool has_told_others = false;
  while (!all.is_stopped && !has_failed() && !has_own_turn(all)) {
    all.has_turn.wait_for(lock, kTellAgainAfter);
    if (!running.stop_wanted) continue;
    if (has_told_others) return false;  // the core whose kernel does not end has recorded where it was
    stop_others(all);
    has_told_others = true;
  }
  needs_turn = false;
  return !all.is_stopped && !has_failed();
}

void take_turn() {
  if (wait_for_turn()) return;
  running.in_kernel = false;
  Fiber::leave();
}

void take_turn_at(const void* address) {
  for (const Block* block : running.thread->block->cluster->blocks)
    if (arena_part(*block, static_cast<const std::byte*>(address))) return;
  const InRuntime inside;
  take_turn();
}

}  // namespace emulator
