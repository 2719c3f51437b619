// Checks for barriers that not all threads of a block reach, and for deadlocks.
#include "barrier_check.h"

#include <algorithm>
#include <bit>
#include <cstdio>
#include <vector>

#include "../report/report.h"
#include "../scheduler/failure.h"
#include "barrier_objects.h"
#include "group_barriers.h"
#include "named_barriers.h"

namespace emulator {
namespace {

constexpr std::size_t kMostPlaces = 6;  // in the list of one finding

// Threads that wait at the same place with the same mask.
struct Group {
  const Thread* first;
  unsigned count;
  std::uint32_t lanes;  // for threads of one warp

  bool has(const Thread& thread) const {
    return thread.operation == first->operation && thread.mask == first->mask &&
           is_same(thread.where, first->where);
  }
};

void join(std::vector<Group>& groups, const Thread& thread) {
  auto group =
      std::find_if(groups.begin(), groups.end(), [&](const Group& group) { return group.has(thread); });
  if (group == groups.end()) group = groups.insert(group, {&thread, 0, 0});
  group->count++;
  group->lanes |= 1u << thread.lane();
}

std::string place_of(const Thread& thread) {
  return std::string(name_of(thread.operation)) + " in " + at(thread.where);
}

std::string threads(unsigned count) { return std::to_string(count) + (count == 1 ? " thread" : " threads"); }
const char* waits(unsigned count) { return count == 1 ? " waits at " : " wait at "; }

const Thread& thread_of(const Block& block, unsigned warp, unsigned lane) {
  return block.threads[32 * warp + lane];
}

void add_returned(const Block& block) {
  const Position where = block.at_barrier[0]->where;
  const Cause cause = cause_at("returned before a barrier", where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  const auto first = std::find_if(block.threads.begin(), block.threads.end(), [&](const Thread& thread) {
    return !(block.warps[thread.warp()].alive >> thread.lane() & 1) && !thread.was_ended;
  });
  add(cause, {true,
              std::to_string(block.returned) + " of " + threads(unsigned(block.threads.size())) +
                  " ended before the " + name_of(block.at_barrier[0]->operation) + " that the others reached",
              at(where),
              "in block " + text_of(block.index) + ", first thread " + text_of(first->index) +
                  "; GPUs continue without them, but CUDA does not guarantee it:\n"
                  "do not return before a barrier, and put no if around it; put the work between barriers "
                  "inside the if"});
}

// Lists what the lanes of a warp wait for, with one line for each group.
std::string list_of(const Block& block, unsigned warp, const std::vector<Group>& groups) {
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostPlaces); i++) {
    const Thread& first = *groups[i].first;
    text += lanes_text(groups[i].lanes) + waits(groups[i].count) + place_of(first);
    std::uint32_t missing = 0;
    const Warp& lanes = block.warps[warp];
    for (unsigned which = 0; which < lanes.pending; which++)
      if (lanes.collectives[which].mask == first.mask &&
          lanes.collectives[which].operation == first.operation)
        missing = first.mask & lanes.alive & ~lanes.collectives[which].arrived;
    text += missing ? " with mask " + in_hex(first.mask) + ", for " + lanes_text(missing)
                    : ", for all threads of the block";
    text += "\n";
  }
  if (groups.size() > kMostPlaces) text += "and " + std::to_string(groups.size() - kMostPlaces) + " more\n";
  return text;
}

// Reports why a collective of a warp never completes.
void add_stuck_warp(const Block& block, unsigned warp, unsigned others) {
  const Warp& lanes = block.warps[warp];
  std::vector<Group> groups;
  for (unsigned lane = 0; lane < 32; lane++)
    if (lanes.alive >> lane & 1) join(groups, thread_of(block, warp, lane));
  const auto stuck =
      std::find_if(groups.begin(), groups.end(), [](const Group& group) { return group.first->mask != 0; });
  const Thread& caller = *stuck->first;
  const bool masks_differ = std::any_of(groups.begin(), groups.end(), [&](const Group& group) {
    return group.first->operation == caller.operation && group.first->mask != caller.mask &&
           ((caller.mask & group.lanes) || (group.first->mask & stuck->lanes));
  });
  const std::string name = name_of(caller.operation);
  const char* advice = masks_differ ? "all lanes that a mask names must use the same mask in their calls"
                                    : "a mask must name only lanes that call the same function";
  const Cause cause = cause_at(masks_differ ? "different masks" : "waits forever", caller.where);
  if (!is_new(cause)) return;
  add(cause, {false,
              masks_differ ? "lanes of one warp call " + name +
                                 " with different masks, and wait for each other forever"
                           : name + " waits forever for lanes that wait elsewhere",
              at(caller.where),
              where_in(block, warp) + (others ? " (and " + std::to_string(others) + " more like it)" : "") +
                  ":\n" + list_of(block, warp, groups) + advice});
}

}  // namespace

Cause cause_at(const char* problem, const Position& where) {
  return {Check::barriers, problem, nullptr, where.file_name(), where.line(), where.column()};
}

std::string in_hex(std::uint32_t mask) {
  char text[16];
  std::snprintf(text, sizeof(text), "0x%08x", mask);
  return text;
}

std::string lanes_text(std::uint32_t lanes) {
  std::string text = std::has_single_bit(lanes) ? "lane " : "lanes ";
  for (int ranges = 0; lanes;) {
    const int first = std::countr_zero(lanes), count = std::countr_one(lanes >> first);
    lanes = first + count == 32 ? 0 : lanes >> (first + count) << (first + count);
    if (ranges++) text += ", ";
    text += std::to_string(first) + (count > 1 ? "-" + std::to_string(first + count - 1) : "");
    if (ranges == 4 && lanes && !std::has_single_bit(lanes))
      return text + ", ... " + std::to_string(31 - std::countl_zero(lanes));
  }
  return text;
}

std::string where_in(const Block& block, unsigned warp) {
  return "block " + text_of(block.index) + ", warp " + std::to_string(warp);
}

void add_different_barriers(Block& block) {
  block.is_diverged = true;
  std::vector<Group> groups;
  for (const Thread& thread : block.threads)
    if (block.warps[thread.warp()].alive >> thread.lane() & 1) join(groups, thread);
  const Position where = groups[0].first->where;
  const Cause cause = cause_at("different barriers", where);
  const AboutThread none(nullptr);
  if (!is_new(cause)) return;
  std::string detail = "in block " + text_of(block.index) + ":\n";
  for (std::size_t i = 0; i < std::min(groups.size(), kMostPlaces); i++)
    detail += threads(groups[i].count) + waits(groups[i].count) + place_of(*groups[i].first) +
              ", first thread " + text_of(groups[i].first->index) + "\n";
  detail += "either all threads of a block must reach a barrier, or none of them";
  add(cause, {false, "threads of one block wait at different barriers", at(where), detail});
}

void check_barrier(Block& block) {
  if (!is_on(Check::barriers) || block.is_diverged) return;
  const Thread& first = *block.at_barrier[0];
  for (const Thread* thread : block.at_barrier)
    if (thread->operation != first.operation || !is_same(thread->where, first.where))
      return add_different_barriers(block);
  if (block.returned > block.returned_before) add_returned(block);
  block.returned_before = block.returned;
}

void add_deadlock() {
  set_error(cudaErrorLaunchTimeout);
  if (!is_on(Check::barriers))
    return set_failure("cannot continue: its threads wait for each other (deadlock)");
  if (add_deadlock_of_groups() || add_deadlock_of_objects() || add_deadlock_of_named_barriers()) return;
  struct Stuck {
    const Block* block;
    unsigned warp;
  };
  std::vector<Stuck> stuck;
  for (const Block* block : running.launch->schedule.resident)
    for (unsigned warp = 0; warp < block->warps.size(); warp++)
      if (block->warps[warp].pending) stuck.push_back({block, warp});
  const auto first = std::min_element(stuck.begin(), stuck.end(), [](const Stuck& a, const Stuck& b) {
    return a.block->number != b.block->number ? a.block->number < b.block->number : a.warp < b.warp;
  });
  add_stuck_warp(*first->block, first->warp, unsigned(stuck.size() - 1));
}

std::string waiting_threads() {
  std::vector<Group> groups;
  for (Block* block : running.launch->schedule.resident) {
    for (const Thread* thread : block->at_barrier) join(groups, *thread);
    for (const Scope scope : {Scope::block, Scope::cluster, Scope::grid})
      for (const Thread* thread : barrier_of(*block, scope).waiting)
        if (thread->block == block) join(groups, *thread);
    for (unsigned warp = 0; warp < block->warps.size(); warp++)
      for (unsigned which = 0; which < block->warps[warp].pending; which++)
        for (unsigned lane = 0; lane < 32; lane++)
          if (block->warps[warp].collectives[which].arrived >> lane & 1)
            join(groups, thread_of(*block, warp, lane));
  }
  std::string text;
  for (std::size_t i = 0; i < std::min(groups.size(), kMostPlaces); i++) {
    const Thread& first = *groups[i].first;
    text += (text.empty() ? "; meanwhile " : ", ") + threads(groups[i].count) + waits(groups[i].count) +
            place_of(first) + ", first block " + text_of(first.block->index) + ", thread " +
            text_of(first.index);
  }
  const Schedule& schedule = running.launch->schedule;
  const std::uint64_t opened = schedule.opened * schedule.cluster_size();
  if (opened < schedule.blocks && schedule.resident.size() >= schedule.most_resident)
    text += "; " + std::to_string(schedule.blocks - opened) + " of " + std::to_string(schedule.blocks) +
            " blocks have not started, because no more fit on the device at once";
  return text;
}

}  // namespace emulator
