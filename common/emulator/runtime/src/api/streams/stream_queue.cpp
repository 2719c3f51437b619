#include "stream_queue.h"

#include <algorithm>

#include "../../accesses/early_accesses.h"
#include "../../accesses/host_accesses.h"
#include "../../memory/devices.h"
#include "../../memory/pages.h"
#include "../../races/initialisation.h"
#include "../../report/call.h"
#include "../memory/allocations.h"
#include "blocked_host.h"
#include "emulator/synchronise.h"
#include "graph.h"

namespace emulator {
namespace {

constexpr std::size_t kMostWaiting = 1024;  // then the host waits for the oldest, as it does for a device

struct Streams {
  std::map<int, CUstream_st> legacy;  // by device
  std::vector<CUstream_st*> all;      // including destroyed streams that are still busy
  std::map<std::uint64_t, std::shared_ptr<Step>> waiting;
  // Memory that launches received in pieces: it is unknown which part they use.
  std::vector<const Allocation*> in_pieces;
  std::uint64_t asked = 0;
  unsigned long launches = 0;
};
Streams& streams() {
  static auto& all = *new Streams;  // outlives every static object
  return all;
}

CUstream_st* legacy(int device) {
  return &streams().legacy.try_emplace(device, CUstream_st{cudaStreamDefault, 0, device}).first->second;
}

CUstream_st* of_this_thread(int device) {
  static thread_local std::map<int, CUstream_st*> mine;
  CUstream_st*& found = mine[device];
  if (!found) streams().all.push_back(found = new CUstream_st{cudaStreamDefault, 0, device});
  return found;
}

}  // namespace

CUstream_st* find(cudaStream_t stream) {
  if (!stream || stream == cudaStreamLegacy) return legacy(current_device());
  if (stream == cudaStreamPerThread) return of_this_thread(current_device());
  for (CUstream_st* one : streams().all)
    if (one == stream && !one->destroyed) return one;
  return nullptr;
}

CUstream_st* new_stream(unsigned int flags, int priority, int device) {
  streams().all.push_back(new CUstream_st{flags, priority, device});
  return streams().all.back();
}

std::vector<CUstream_st*> all_streams() { return streams().all; }

bool is_default(const CUstream_st& stream) { return &stream == legacy(stream.device); }

void clear_away() {
  std::erase_if(streams().all, [](CUstream_st* one) {
    const bool gone = one->destroyed && !one->is_busy();
    if (gone) delete one;
    return gone;
  });
}

Steps ends_of(const CUstream_st& stream) {
  Steps ends;
  const auto add = [&](const CUstream_st& one) {
    if (one.is_busy()) ends.push_back(one.last);
  };
  add(stream);
  if (is_default(stream)) {
    for (const CUstream_st* one : streams().all)
      if (one->is_blocking() && one->device == stream.device) add(*one);
  } else if (stream.is_blocking()) {
    add(*legacy(stream.device));
  }
  return ends;
}

namespace {

// Whether to assume that a launch uses all of an allocation: not if other pointers begin in the middle of it.
bool is_whole(const Allocation& allocation, const void* begin) {
  auto& in_pieces = streams().in_pieces;
  if (std::count(in_pieces.begin(), in_pieces.end(), &allocation)) return false;
  if (begin == allocation.begin) return true;
  in_pieces.push_back(&allocation);
  for (auto& [number, step] : streams().waiting)
    for (const MemoryUse& use : step->work.uses)
      if (!step->work.uses_are_exact && use.begin == allocation.begin) lift_protection(step.get());
  return false;
}

void protect_used_memory(const Step& step) {
  for (const MemoryUse& use : step.work.uses) {
    const Allocation* allocation = find_allocation(use.begin);
    if (!allocation || allocation->freed || allocation->is_registered) continue;
    if (allocation->space != Space::managed && allocation->space != Space::pinned) continue;
    if (!step.work.uses_are_exact && !is_whole(*allocation, use.begin)) continue;
    const auto* begin = static_cast<const std::byte*>(use.begin);
    const std::size_t bytes = std::min(use.bytes, std::size_t(allocation->end() - begin));
    protect_from_host({const_cast<std::byte*>(begin), bytes, !use.writes, &step});
  }
}

// It is unknown which `__managed__` variables a kernel uses.
void protect_managed_variables(const Step& step) {
  if (step.work.uses_are_exact) return;
  for (const Allocation* allocation : all_allocations())
    if (allocation->is_static) protect_from_host({allocation->begin, allocation->size, false, &step});
}

// Memory for host and device that a kernel received as writable: the host's first access shows whether it
// reads a result that no thread has written.
void watch_untouched(const Step& step) {
  if (!collect_until_exit || !is_on(Check::initialisation)) return;
  for (const MemoryUse& use : step.work.uses) {
    const Allocation* allocation = find_allocation(use.begin);
    if (!allocation || allocation->freed || allocation->is_registered) continue;
    if (allocation->space != Space::managed && allocation->space != Space::pinned) continue;
    lift_protection(allocation);
    if (step.work.is_launch() && use.writes && is_untouched(*allocation))
      protect_from_host({allocation->begin, allocation->size, false, allocation, true});
  }
}

void do_now(Step& step) {
  step.done = true;
  step.after.clear();
  lift_protection(&step);
  if (step.work.run && !sticky_error()) {
    const OnDevice open;
    const ConcurrentHost host(&step);
    begin_work_on(step.device);
    {
      const WorkUnderWay work(&step);
      run_and_find_hazards(step, streams().waiting);
    }
    streams().launches += step.work.is_launch();
    watch_untouched(step);
  }
  step.work.run = nullptr;
  step.when = clock64();
  streams().waiting.erase(step.number);
}

}  // namespace

void finish_steps(Steps open) {
  std::map<std::uint64_t, std::shared_ptr<Step>> needed;
  while (!open.empty()) {
    const std::shared_ptr<Step> step = open.back();
    open.pop_back();
    if (step->done || !needed.emplace(step->turn, step).second) continue;
    open.insert(open.end(), step->after.begin(), step->after.end());
  }
  for (auto& [turn, step] : needed) do_now(*step);
  clear_away();
}

std::shared_ptr<Step> append_after(Steps after, Work work, int device) {
  auto step = std::make_shared<Step>();
  step->number = step->turn = streams().asked++;
  step->work = std::move(work);
  step->after = std::move(after);
  step->device = device;
  if (!collect_until_exit) {
    do_now(*step);
    return step;
  }
  streams().waiting.emplace(step->number, step);
  watch_for_blocked_host();
  protect_used_memory(*step);
  protect_managed_variables(*step);
  return step;
}

std::shared_ptr<Step> append(CUstream_st& stream, Work work) {
  stream.last = append_after(ends_of(stream), std::move(work), stream.device);
  const auto step = stream.last;
  if (streams().waiting.size() > kMostWaiting) finish_steps({streams().waiting.begin()->second});
  return step;
}

bool is_stream(cudaStream_t stream) { return find(stream); }

cudaError_t finish(cudaStream_t stream) {
  finish_steps(ends_of(*find(stream)));
  return sticky_error();
}

bool has_waiting_work() {
  const Call call("the device", Position{});
  return !streams().waiting.empty();
}

void finish_oldest() {
  if (!streams().waiting.empty()) finish_steps({streams().waiting.begin()->second});
}

void finish_work(const void* work) {
  for (auto& [number, step] : streams().waiting)
    if (step.get() == work) return finish_steps({step});
}

cudaError_t finish_device(int device) {
  Steps all;
  for (auto& [number, step] : streams().waiting)
    if (step->device == device) all.push_back(step);
  finish_steps(std::move(all));
  return sticky_error();
}

cudaError_t finish_all() {
  for (int device = 0; device < device_count(); device++) finish_device(device);
  return sticky_error();
}

unsigned long launches_done() { return streams().launches; }

void report_unfinished() {
  for (auto& [number, step] : streams().waiting) {
    const Work& work = step->work;
    if (!work.matters || !is_on(Check::streams)) continue;
    const Cause cause{Check::streams,         "unfinished",      nullptr,
                      work.where.file_name(), work.where.line(), work.where.column()};
    if (is_new(cause))
      add(cause, {false, work.what + " did not run: the program ended without waiting for it",
                  line_at(work.where), "call cudaDeviceSynchronize() before the program ends"});
  }
}

const std::string* name_of_work(const void* work, Position* where) {
  const auto* step = static_cast<const Step*>(work);
  *where = step->work.where;
  return &step->work.what;
}

}  // namespace emulator
