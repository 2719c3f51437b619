#include "child_launches.h"

#include <algorithm>
#include <map>
#include <utility>

#include "../memory/allocation.h"
#include "../memory/shared_memory.h"
#include "../ordering/known_blocks.h"
#include "../report/call.h"
#include "../report/launch_limits.h"
#include "../report/report.h"
#include "../scheduler/cores.h"
#include "../state/fiber.h"
#include "../state/launch_tree.h"
#include "../state/thread_order.h"
#include "emulator/launch_api.h"

namespace emulator {
namespace {

constexpr std::size_t kMostHeads = 64;  // streams from which a seed chooses the next child

// A stream of one launch: the default stream of a block, or a stream that a kernel has created.
using ChildStream = std::pair<cudaStream_t, std::uint64_t>;

struct LaunchTree {
  std::map<ChildStream, std::vector<BlockRange>> ended;  // what ran in a stream
  std::uint64_t next_block = 0;
};
LaunchTree& launch_tree() {
  static auto& tree = *new LaunchTree;
  return tree;
}

bool is_tail(const ChildLaunch& child) { return child.info.configuration.stream == cudaStreamTailLaunch; }
bool has_no_order(const ChildLaunch& child) {
  return child.info.configuration.stream == cudaStreamFireAndForget;
}

ChildStream stream_of(const ChildLaunch& child) {
  const cudaStream_t stream = child.info.configuration.stream;
  return {stream, stream ? 0 : child.block};
}

void report_launch(const char* problem, Check check, std::string what, std::string detail, Position where) {
  const Cause cause{check, problem, nullptr, where.file_name(), where.line(), where.column()};
  if (is_on(check) && is_new(cause)) add(cause, {false, std::move(what), line_at(where), std::move(detail)});
}

// A child cannot access the stack of its parent, nor the shared memory of the parent's block.
bool is_given_own_memory(const LaunchInfo& info) {
  for (const Argument& argument : info.arguments) {
    if (!argument.is_pointer || !argument.pointer) continue;
    const auto* address = static_cast<const std::byte*>(argument.pointer);
    const bool is_local = Fiber::running()->holds(address);
    if (!is_local && !arena_part(*running.thread->block, address)) continue;
    report_launch("own memory", Check::memory,
                  std::string("the launch of ") + info.kernel + " is given " +
                      (is_local ? "a local variable of a thread" : "shared memory of a block") + " as " +
                      (argument.name.empty() ? "an argument" : argument.name),
                  "a kernel that is launched by a kernel can access only global memory of its parent",
                  info.configuration.where);
    return true;
  }
  return false;
}

// The first child of each stream may be the next one.
std::size_t choose(const std::vector<std::shared_ptr<ChildLaunch>>& children) {
  std::vector<std::size_t> heads;
  std::vector<ChildStream> seen;
  for (std::size_t i = 0; i < children.size() && heads.size() < kMostHeads; i++) {
    if (is_tail(*children[i])) continue;
    const ChildStream stream = stream_of(*children[i]);
    if (!has_no_order(*children[i])) {
      if (std::count(seen.begin(), seen.end(), stream)) continue;
      seen.push_back(stream);
    }
    heads.push_back(i);
  }
  return heads.empty() ? 0 : heads[pick(heads.size())];  // only tail launches are left: the first of them
}

}  // namespace

cudaError_t launch_child(LaunchInfo info) {
  take_turn();
  std::shared_ptr<void> closure(info.closure, info.destroy);
  const Position where = info.configuration.where;
  const std::string launch = std::string("the launch of ") + info.kernel;
  if (running.launch->depth >= kMostNested) {
    report_launch("nested launches", Check::launch,
                  launch + " is refused: it is nested more than " + std::to_string(kMostNested) + " deep",
                  "does a kernel launch itself without an end?", where);
    return fail(cudaErrorLaunchPendingCountExceeded);
  }
  if (const auto refusal = refusal_of_launch(info.configuration, device())) {
    report_launch(refusal->problem, Check::launch, launch + " is refused: " + refusal->what,
                  "no host code learns of this: the kernel must call cudaGetLastError", where);
    return fail(refusal->error);
  }
  if (is_given_own_memory(info)) return fail(cudaErrorInvalidValue);
  auto known = is_on(Check::races) ? known_to_thread() : nullptr;
  auto child = std::make_shared<ChildLaunch>(
      ChildLaunch{std::move(info), std::move(closure), running.thread->block->number, std::move(known)});
  ChildLaunches& children = *running.launch->children;
  const std::lock_guard lock(children.mutex);
  children.in_order.push_back(std::move(child));
  return cudaSuccess;
}

void begin_launch_tree(LaunchState& root) {
  LaunchTree& tree = launch_tree();
  root.children = std::make_shared<ChildLaunches>();
  clear_launch_tree();
  add_to_launch_tree({0, 0, root.kernel, root.configuration.grid, root.configuration.block});
  tree.ended.clear();
  tree.next_block = root.schedule.blocks;
}

std::shared_ptr<ChildLaunch> next_child(LaunchState& launch) {
  auto& children = launch.children->in_order;
  if (children.empty()) return nullptr;
  const auto place = children.begin() + std::ptrdiff_t(choose(children));
  auto child = std::move(*place);
  children.erase(place);
  return child;
}

void begin_child(LaunchState& child, const LaunchState& parent, const ChildLaunch& from) {
  LaunchTree& tree = launch_tree();
  child.children = std::make_shared<ChildLaunches>();
  child.depth = parent.depth + 1;
  child.first_block = tree.next_block;
  tree.next_block += child.schedule.blocks;
  add_to_launch_tree({child.first_block, parent.first_block, child.kernel, child.configuration.grid,
                      child.configuration.block});
  auto known = std::make_shared<KnownBlocks>();
  if (is_tail(from)) {
    if (parent.known) *known = *parent.known;
    known->ended.push_back({parent.first_block, child.first_block});
  } else {
    if (from.known) *known = *from.known;
    const auto& before = tree.ended[stream_of(from)];
    if (!has_no_order(from)) known->ended.insert(known->ended.end(), before.begin(), before.end());
  }
  child.known = std::move(known);
}

void end_child(const ChildLaunch& child, const LaunchState& state) {
  if (is_tail(child)) return;
  auto& ended = launch_tree().ended[stream_of(child)];
  if (!ended.empty() && ended.back().end == state.first_block)
    ended.back().end = launch_tree().next_block;
  else
    ended.push_back({state.first_block, launch_tree().next_block});
}

}  // namespace emulator
