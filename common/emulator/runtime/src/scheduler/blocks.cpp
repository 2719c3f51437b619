#include "blocks.h"

#include <algorithm>

#include "../state/events.h"
#include "../state/thread_order.h"
#include "cores.h"
#include "shared_variables.h"

namespace emulator {
namespace {

std::vector<Block*>& spare_blocks() {
  static EMULATOR_OF_CORE std::vector<Block*>* blocks = nullptr;
  if (!blocks) blocks = new std::vector<Block*>;
  return *blocks;
}

void reset_warps(Block& block) {
  const auto threads = unsigned(block.threads.size());
  block.warps.resize((threads + 31) / 32);
  for (unsigned w = 0; w < block.warps.size(); w++) {
    const unsigned lanes = std::min(32u, threads - 32 * w);
    block.warps[w].alive = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    block.warps[w].pending = 0;
  }
}

void reset_barriers(Block& block) {
  block.is_diverged = false;
  block.at_barrier.clear();
  block.votes = {};
  block.barrier.reset();
  std::fill_n(block.arrived, kScopes, 0);
  std::fill_n(block.has_arrived, kScopes, false);
}

Block& open_block(uint3 index) {
  Schedule& schedule = running.launch->schedule;
  auto& spare = spare_blocks();
  if (spare.empty()) spare.push_back(new Block);
  Block& block = *spare.back();
  schedule.resident.push_back(&block);
  spare.pop_back();

  const dim3 grid = running.launch->configuration.grid;
  block.number = running.launch->first_block + index.x +
                 std::uint64_t(grid.x) * (index.y + std::uint64_t(grid.y) * index.z);
  block.index = index;
  block.threads.resize(schedule.threads_per_block);
  reset_warps(block);
  block.started = 0;
  block.alive = schedule.threads_per_block;
  block.returned = block.returned_before = 0;
  reset_barriers(block);
  clear_shared(block);
  return block;
}

}  // namespace

void open_cluster(std::uint64_t number) {
  Schedule& schedule = running.launch->schedule;
  const dim3 size = schedule.cluster, grid = running.launch->configuration.grid;
  const dim3 clusters(grid.x / size.x, grid.y / size.y, grid.z / size.z);
  const unsigned blocks = schedule.cluster_size();
  const uint3 at = index_at(clusters, shuffled(number, schedule.blocks / blocks, 0));
  Cluster* cluster = nullptr;
  for (unsigned rank = 0; rank < blocks; rank++) {
    const uint3 inside = index_at(size, rank);
    Block& block = open_block({at.x * size.x + inside.x, at.y * size.y + inside.y, at.z * size.z + inside.z});
    if (rank == 0) {
      cluster = &block.own_cluster;
      cluster->blocks.clear();
      cluster->alive = blocks;
      cluster->barrier.reset();
    }
    cluster->blocks.push_back(&block);
    block.cluster = cluster;
    block.cluster_rank = rank;
    on_block_begins(block);
  }
  for (unsigned n = 0; n < blocks; n++)
    schedule.starting.push_back(cluster->blocks[shuffled(n, blocks, number + 1)]);
}

// The shared memory of a cluster's blocks stays until all of them have ended.
void close_block(Block& block) {
  auto& resident = running.launch->schedule.resident;
  if (--block.cluster->alive > 0) return;
  for (Block* each : block.cluster->blocks) {
    resident.erase(std::find(resident.begin(), resident.end(), each));
    spare_blocks().push_back(each);
  }
  end_cluster();
}

void keep_blocks() {
  auto& resident = running.launch->schedule.resident;
  spare_blocks().insert(spare_blocks().end(), resident.begin(), resident.end());
  resident.clear();
}

}  // namespace emulator
