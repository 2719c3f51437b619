// The place of the running thread in its cluster, and the shared memory of the other blocks there.
#include <stdexcept>
#include <string>
#include <utility>

#include "../memory/shared_memory.h"
#include "../report/launch_limits.h"
#include "../report/report.h"
#include "emulator/groups.h"
#include "failure.h"
#include "scheduler.h"

namespace emulator {
namespace {

const Block& own_block() {
  if (!running.thread) throw std::runtime_error("a cooperative group was used outside of a kernel");
  return *running.thread->block;
}

bool is_same_size(dim3 a, dim3 b) { return a.x == b.x && a.y == b.y && a.z == b.z; }

[[noreturn]] void refuse_peer(const char* problem, std::string what, Position where) {
  if (!is_on(Check::memory)) abandon("%s, in %s", what.c_str(), line_at(where).c_str());
  const Cause cause{Check::memory, problem, nullptr, where.file_name(), where.line(), where.column()};
  if (is_new(cause)) add(cause, {false, std::move(what), line_at(where), ""});
  end_thread();
}

}  // namespace

bool is_cooperative() { return running.launch && running.launch->configuration.is_cooperative; }

dim3 cluster_dim() { return own_block(), running.launch->schedule.cluster; }

uint3 cluster_of_grid() {
  const uint3 block = own_block().index;
  const dim3 size = cluster_dim();
  return {block.x / size.x, block.y / size.y, block.z / size.z};
}

uint3 block_of_cluster() { return index_at(cluster_dim(), own_block().cluster_rank); }

unsigned rank_in_cluster() { return own_block().cluster_rank; }

void* map_to_peer(const void* address, unsigned rank, Position where) {
  const Block& own = own_block();
  const InRuntime inside;
  const auto* byte = static_cast<const std::byte*>(address);
  const std::byte* part = arena_part(own, byte);
  const std::size_t blocks = own.cluster->blocks.size();
  if (!part)
    refuse_peer("no shared memory", "map_shared_rank is given an address outside of shared memory", where);
  if (rank >= blocks)
    refuse_peer("no such block",
                "map_shared_rank is given the rank " + std::to_string(rank) + ", but the cluster has " +
                    std::to_string(blocks) + (blocks == 1 ? " block" : " blocks"),
                where);
  const Arena& peer = own.cluster->blocks[rank]->arena;
  return (part == own.arena.bytes ? peer.bytes : peer.dynamic) + (byte - part);
}

unsigned rank_of_owner(const void* address, Position where) {
  for (const Block* block : own_block().cluster->blocks)
    if (arena_part(*block, static_cast<const std::byte*>(address))) return block->cluster_rank;
  const InRuntime inside;
  refuse_peer("no shared memory", "query_shared_rank is given an address outside of shared memory", where);
}

bool is_shared(const void* address) {
  return running.thread && arena_part(own_block(), static_cast<const std::byte*>(address));
}

void declare_cluster(unsigned x, unsigned y, unsigned z) {
  const dim3 declared(x, y, z);
  if (is_same_size(running.launch->schedule.cluster, declared)) return;
  running.in_kernel = false;
  if (running.launch->configuration.cluster.x)
    running.launch->refusal = refusal_of_two_clusters(running.launch->configuration.cluster, declared);
  else
    running.launch->schedule.declared_cluster = declared;
  Fiber::leave();
}

void declare_launch_bounds(long long threads, long long, long long) {
  const auto asked = running.launch->schedule.threads_per_block;
  if (asked <= threads) return;
  running.in_kernel = false;
  running.launch->refusal = refusal_of_threads(asked, threads);
  Fiber::leave();
}

}  // namespace emulator
