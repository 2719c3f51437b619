// What the groups of cooperative_groups.h are made of: barriers of a block, a cluster or the grid, and the
// place of the running thread in its cluster and its grid.
#pragma once

#include <cstddef>

#include "emulator/state.h"
#include "emulator/types.h"

EMULATOR_BEGIN
namespace emulator {

void sync_group(Scope scope, Position where);
// The two halves of sync_group: a thread may do other work between them.
void arrive_at_group(Scope scope, Position where);
void wait_at_group(Scope scope, Position where);

bool is_cooperative();  // the launch: all blocks of the grid run at the same time

dim3 cluster_dim();       // blocks of the running thread's cluster, in each dimension
uint3 cluster_of_grid();  // which cluster it is
uint3 block_of_cluster();
unsigned rank_in_cluster();  // of the block, x fastest

// The same place in the shared memory of another block of the cluster.
void* map_to_peer(const void* address, unsigned rank, Position where);
unsigned rank_of_owner(const void* address, Position where);  // whose shared memory it is
bool is_shared(const void* address);                          // of the running thread's own block

// The rewriter begins a kernel with this where it has __cluster_dims__. If the launch did not ask for such
// clusters, its blocks start again in clusters.
void declare_cluster(unsigned x = 1, unsigned y = 1, unsigned z = 1);

// The same for __launch_bounds__: ends a launch with more threads per block.
void declare_launch_bounds(long long threads, long long blocks = 0, long long cluster = 0);
// The bounds of a kernel that is no template, for the attributes of kernels of this name.
bool keep_launch_bounds(const char* kernel, long long threads, long long blocks = 0, long long cluster = 0);

}  // namespace emulator
EMULATOR_END

EMULATOR_BEGIN
inline void __cluster_barrier_arrive(EMULATOR_HERE) {
  emulator::arrive_at_group(emulator::Scope::cluster, where);
}
inline void __cluster_barrier_wait(EMULATOR_HERE) {
  emulator::wait_at_group(emulator::Scope::cluster, where);
}
inline dim3 __clusterDim() { return emulator::cluster_dim(); }
inline dim3 __clusterIdx() { return emulator::cluster_of_grid(); }
inline dim3 __clusterRelativeBlockIdx() { return emulator::block_of_cluster(); }
inline unsigned __clusterRelativeBlockRank() { return emulator::rank_in_cluster(); }
inline unsigned __clusterSizeInBlocks() {
  const dim3 size = emulator::cluster_dim();
  return size.x * size.y * size.z;
}
inline dim3 __clusterGridDimInClusters() {
  const dim3 size = emulator::cluster_dim();
  return {gridDim.x / size.x, gridDim.y / size.y, gridDim.z / size.z};
}
inline void* __cluster_map_shared_rank(const void* address, unsigned rank, EMULATOR_HERE) {
  return emulator::map_to_peer(address, rank, where);
}
inline unsigned __cluster_query_shared_rank(const void* address, EMULATOR_HERE) {
  return emulator::rank_of_owner(address, where);
}
EMULATOR_END
