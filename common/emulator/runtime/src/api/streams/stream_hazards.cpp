// Hazards between streams: work that overtakes other work on the same memory, because it does not wait.
#include <algorithm>
#include <cstring>

#include "../../memory/allocation.h"
#include "../../report/call.h"
#include "stream_queue.h"

namespace emulator {
namespace {

struct Region {
  const std::byte* begin;
  std::size_t bytes;
};

// The memory that a step uses. For a kernel this is a guess.
Region region_of(const MemoryUse& use) {
  const Allocation* allocation = find_allocation(use.begin);
  const auto* begin = static_cast<const std::byte*>(use.begin);
  if (!allocation || allocation->freed) return {begin, 0};
  return {begin, std::min(use.bytes, std::size_t(allocation->end() - begin))};
}

// Whether the rows of each lie in the gaps of the other, as those of two parts of a matrix do.
bool are_interleaved(const MemoryUse& a, const MemoryUse& b) {
  if (!a.pitch || a.pitch != b.pitch) return false;
  const auto pitch = std::ptrdiff_t(a.pitch);
  const std::ptrdiff_t apart =
      (static_cast<const std::byte*>(b.begin) - static_cast<const std::byte*>(a.begin)) % pitch;
  const auto offset = std::size_t(apart < 0 ? apart + pitch : apart);
  return offset >= a.width && offset + b.width <= a.pitch;
}

// Memory that both may use and that the first certainly uses; zero bytes if there is none.
Region common(const MemoryUse& sure, bool is_exact, const MemoryUse& other) {
  if (are_interleaved(sure, other)) return {nullptr, 0};
  const Region ours = region_of(sure), others = region_of(other);
  const std::byte* begin = std::max(ours.begin, others.begin);
  const std::byte* end = std::min(ours.begin + ours.bytes, others.begin + others.bytes);
  const bool certain = is_exact || begin == ours.begin;
  return {begin, certain && end > begin ? std::size_t(end - begin) : 0};
}

bool is_there(const std::byte* memory) {
  const Allocation* allocation = find_allocation(memory);
  return allocation && !allocation->freed;
}

std::vector<std::byte> bytes_of(const std::byte* begin, std::size_t bytes) {
  if (!is_there(begin)) return {};
  return {begin, begin + bytes};
}

bool has_changed(const std::vector<std::byte>& before, const std::byte* begin) {
  return !before.empty() && is_there(begin) && std::memcmp(before.data(), begin, before.size()) != 0;
}

// How the work could wait for the earlier step.
std::string advice(std::uint64_t graph_launch, const Step& earlier) {
  const std::string since = " in " + line_at(earlier.work.where);
  if (graph_launch && graph_launch == earlier.graph_launch)
    return earlier.work.what + " is another node of the graph, added" + since +
           ": add a dependency on it, directly or through other nodes";
  return earlier.work.what + " was started earlier," + since +
         ", in another stream: wait for that stream or for an event";
}

void report_hazard(const std::string& what, Position where, std::uint64_t graph_launch, const Step& earlier,
                   const std::byte* memory) {
  const Position since = earlier.work.where;
  const Cause cause{Check::streams, "overtakes", nullptr, where.file_name(), where.line(), since.line()};
  if (!is_on(Check::streams) || !is_new(cause)) return;
  const Allocation* allocation = find_allocation(memory);
  const std::string name = allocation && !allocation->name.empty() ? allocation->name : "the same memory";
  add(cause, {false, what + " does not wait for " + earlier.work.what + ", and both use " + name,
              line_at(where), advice(graph_launch, earlier)});
}

// Memory that the step is about to change, and that a waiting earlier step uses.
struct AffectedStep {
  std::shared_ptr<Step> step;
  const std::byte* begin;
  std::vector<std::byte> before;
};

}  // namespace

void run_and_find_hazards(Step& step, const std::map<std::uint64_t, std::shared_ptr<Step>>& waiting) {
  std::vector<AffectedStep> affected;
  for (const auto& [number, earlier] : waiting) {
    if (number >= step.number) break;
    for (const MemoryUse& ours : step.work.uses)
      for (const MemoryUse& its : earlier->work.uses) {
        if (its.writes)
          if (const Region region = common(ours, step.work.uses_are_exact, its); region.bytes)
            earlier->watched.push_back(
                {region.begin, region.bytes, step.work.what, step.work.where, step.graph_launch});
        if (ours.writes)
          if (const Region region = common(its, earlier->work.uses_are_exact, ours); region.bytes)
            affected.push_back({earlier, region.begin, bytes_of(region.begin, region.bytes)});
      }
  }
  std::vector<std::vector<std::byte>> before;
  for (const WatchedMemory& one : step.watched) before.push_back(bytes_of(one.begin, one.bytes));
  step.work.run();
  for (std::size_t i = 0; i < before.size(); i++) {
    const WatchedMemory& one = step.watched[i];
    if (has_changed(before[i], one.begin))
      report_hazard(one.what, one.where, one.graph_launch, step, one.begin);
  }
  for (const AffectedStep& one : affected)
    if (has_changed(one.before, one.begin))
      report_hazard(step.work.what, step.work.where, step.graph_launch, *one.step, one.begin);
}

}  // namespace emulator
