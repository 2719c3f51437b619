// An access is safe if something orders it after the first step of the block that owns the memory, and before
// the end of one of that block's threads. The report does not depend on the order in which they really ran.
#include "peer_accesses.h"

#include <algorithm>
#include <map>
#include <utility>

#include "../ordering/happens_before.h"
#include "../ordering/release_acquire.h"
#include "../report/report.h"
#include "../synchronisation/barrier_check.h"
#include "access_sites.h"
#include "race_text.h"

namespace emulator {

// The latest access of each instruction in each thread that is not known to come before the block's end.
struct PeerAccesses {
  struct Latest {
    Epoch epoch;
    Access access;
  };
  std::map<std::pair<Thread*, Site>, Latest> unsettled;
};

namespace {

std::string verb_text(const Access& access) {
  if (is_atomic(access.kind)) return "updates ";
  return access.is_write ? "writes " : "reads ";
}

void report(const Access& access, Site site, const char* problem, const std::string& what,
            const std::string& detail) {
  const Cause cause{Check::races, problem, line_of(site), memory_of(access)};
  if (is_new(cause))
    add(cause,
        {false, verb_text(access) + element_at(access, access.address) + what, info_of(site).text, detail});
}

bool knows_start_of(const Block& block) {
  const auto number = std::uint32_t(block.number);
  if (*thread_clock.known && (*thread_clock.known)->blocks.count(number)) return true;
  for (unsigned rank = 0; rank < block.threads.size(); rank++)
    if (is_released(Epoch(number, rank, 1))) return true;
  return false;
}

std::string block_text(const Block& block) { return "block " + text_of(block.index); }

void report_early(const Access& access, Site site) {
  report(
      access, site, "before its block started", ", which may not have started",
      "there is no cluster_group::sync before it: the blocks of a cluster do not start at the same moment");
}

void report_late(const Access& access, Site site) {
  const auto& threads = access.owner->threads;  // a check that ends threads has reported why
  if (std::any_of(threads.begin(), threads.end(), [](const Thread& thread) { return thread.was_ended; }))
    return;
  report(access, site, "after its block ended", ", which may have ended",
         "there is no cluster_group::sync between it and the end of " + block_text(*access.owner) +
             ":\nthe shared memory of a block is lost when the block ends");
}

}  // namespace

void begin_peer_accesses(Block& block, bool has_peers) {
  block.peers = has_peers ? std::make_shared<PeerAccesses>() : nullptr;
}

void check_peer(const Access& access) {
  if (!is_on(Check::races) || !epoch_now()) return;
  const Site site = site_of(access);
  if (!knows_start_of(*access.owner)) report_early(access, site);
  if (access.owner->alive == 0)
    report_late(access, site);
  else
    access.owner->peers->unsettled[{running.thread, site}] = {thread_clock.epoch, access};
}

void settle_peer_accesses(Thread& thread) {
  auto& unsettled = thread.block->peers->unsettled;
  if (unsettled.empty()) return;
  epoch_now();
  std::erase_if(unsettled,
                [](const auto& one) { return is_after(one.second.epoch) || is_released(one.second.epoch); });
  if (thread.block->alive > 1) return;  // others of the block continue
  for (const auto& [instruction, latest] : unsettled) {
    const AboutThread about(instruction.first);
    report_late(latest.access, instruction.second);
  }
  unsettled.clear();
}

}  // namespace emulator
