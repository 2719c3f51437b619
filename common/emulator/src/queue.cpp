#include "queue.h"

#include <algorithm>

#include "allocations.h"
#include "api.h"
#include "emulator/synchronise.h"
#include "pages.h"

namespace emulator {
namespace {

constexpr std::size_t kMostWaiting = 1024;  // then the host waits for the oldest, as it does for a device

struct Streams {
  CUstream_st legacy{cudaStreamDefault, 0};
  std::vector<CUstream_st*> all;  // destroyed ones too, while they are busy
  std::map<std::uint64_t, std::shared_ptr<Step>> waiting;
  // Memory that launches were given in pieces: which of it they use, nobody knows.
  std::vector<const Allocation*> in_pieces;
  std::uint64_t asked = 0;
  unsigned long launches = 0;
};
Streams& streams() {
  static auto& all = *new Streams;  // outlives every static object
  return all;
}

CUstream_st* of_this_thread() {
  static thread_local CUstream_st* mine = nullptr;
  if (!mine) streams().all.push_back(mine = new CUstream_st{cudaStreamDefault, 0});
  return mine;
}

}  // namespace

CUstream_st* find(cudaStream_t stream) {
  if (!stream || stream == cudaStreamLegacy) return &streams().legacy;
  if (stream == cudaStreamPerThread) return of_this_thread();
  for (CUstream_st* one : streams().all)
    if (one == stream && !one->destroyed) return one;
  return nullptr;
}

CUstream_st* new_stream(unsigned int flags, int priority) {
  streams().all.push_back(new CUstream_st{flags, priority});
  return streams().all.back();
}

bool is_default(const CUstream_st& stream) { return &stream == &streams().legacy; }

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
  if (&stream == &streams().legacy) {
    for (const CUstream_st* one : streams().all)
      if (one->is_blocking()) add(*one);
  } else if (stream.is_blocking()) {
    add(streams().legacy);
  }
  return ends;
}

namespace {

// Whether a launch may be taken to use all of an allocation; not when others begin in the middle of it.
bool is_whole(const Allocation& allocation, const void* begin) {
  auto& in_pieces = streams().in_pieces;
  if (std::count(in_pieces.begin(), in_pieces.end(), &allocation)) return false;
  if (begin == allocation.begin) return true;
  in_pieces.push_back(&allocation);
  for (auto& [number, step] : streams().waiting)
    for (const Touched& use : step->work.uses)
      if (step->work.is_launch && use.begin == allocation.begin) take_down(step.get());
  return false;
}

void fence_off(const Step& step) {
  for (const Touched& use : step.work.uses) {
    const Allocation* allocation = find_allocation(use.begin);
    if (!allocation || allocation->freed || is_registered(*allocation)) continue;
    if (allocation->space != Space::managed && allocation->space != Space::pinned) continue;
    if (step.work.is_launch && !is_whole(*allocation, use.begin)) continue;
    const auto* begin = static_cast<const std::byte*>(use.begin);
    const std::size_t bytes = std::min(use.bytes, std::size_t(allocation->end() - begin));
    put_up({const_cast<std::byte*>(begin), bytes, !use.writes, &step});
  }
}

void do_now(Step& step) {
  step.done = true;
  step.after.clear();
  take_down(&step);
  if (step.work.run && !broken()) {
    const OnDevice open;
    run_among(step, streams().waiting);
    streams().launches += step.work.is_launch;
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
    if (step->done || !needed.emplace(step->number, step).second) continue;
    open.insert(open.end(), step->after.begin(), step->after.end());
  }
  for (auto& [number, step] : needed) do_now(*step);
  clear_away();
}

std::shared_ptr<Step> append(CUstream_st& stream, Work work) {
  auto step = std::make_shared<Step>();
  step->number = streams().asked++;
  step->work = std::move(work);
  step->after = ends_of(stream);
  stream.last = step;
  if (!collect_until_exit) {
    do_now(*step);
    return step;
  }
  streams().waiting.emplace(step->number, step);
  fence_off(*step);
  if (streams().waiting.size() > kMostWaiting) finish_steps({streams().waiting.begin()->second});
  return step;
}

bool is_stream(cudaStream_t stream) { return find(stream); }

cudaError_t enqueue(cudaStream_t stream, Work work) {
  if (broken()) return broken();
  CUstream_st* found = find(stream);
  if (!found) return no_such("a stream");
  append(*found, std::move(work));
  return broken();
}

cudaError_t finish(cudaStream_t stream) {
  finish_steps(ends_of(*find(stream)));
  return broken();
}

cudaError_t finish_all() {
  Steps all;
  for (auto& [number, step] : streams().waiting) all.push_back(step);
  finish_steps(std::move(all));
  return broken();
}

unsigned long launches_done() { return streams().launches; }

void report_unfinished() {
  for (auto& [number, step] : streams().waiting) {
    const Work& work = step->work;
    if (!work.matters || !is_on(Check::streams)) continue;
    const Cause cause{Check::streams,         "unfinished",      nullptr,
                      work.where.file_name(), work.where.line(), work.where.column()};
    if (is_new(cause))
      add(cause, {false, work.what + " has not happened: the program ends without waiting for it",
                  line_at(work.where), "wait with cudaDeviceSynchronize() before the program ends"});
  }
}

const std::string* name_of_work(const void* work, Position* where) {
  const auto* step = static_cast<const Step*>(work);
  *where = step->work.where;
  return &step->work.what;
}

}  // namespace emulator
