// The groups of cooperative_groups.h that consist of whole blocks: a block, a cluster, the grid.
#pragma once

#include <cstdint>
#include <utility>

#include "cuda_runtime.h"
#include "emulator/groups.h"

EMULATOR_BEGIN
namespace cooperative_groups {

// Says that a thread has arrived at a barrier. It is used up by the wait.
class arrival_token {
 public:
  arrival_token(arrival_token&&) = default;
  arrival_token& operator=(arrival_token&&) = default;

 private:
  friend class thread_block;
  friend class cluster_group;
  friend class grid_group;
  arrival_token() = default;
};

#define EMULATOR_BARRIERS(scope)                                                                      \
  static void sync(EMULATOR_HERE) { emulator::sync_group(scope, where); }                             \
  using arrival_token = cooperative_groups::arrival_token;                                            \
  static arrival_token barrier_arrive(EMULATOR_HERE) {                                                \
    return emulator::arrive_at_group(scope, where), arrival_token();                                  \
  }                                                                                                   \
  static void barrier_wait(arrival_token&&, EMULATOR_HERE) { emulator::wait_at_group(scope, where); } \
  static void barrier_wait(EMULATOR_HERE) { emulator::wait_at_group(scope, where); }

class thread_block {
 public:
  EMULATOR_BARRIERS(emulator::Scope::block)
  static unsigned thread_rank() {
    return (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  }
  static dim3 group_index() { return blockIdx; }
  static dim3 thread_index() { return threadIdx; }
  static dim3 dim_threads() { return blockDim; }
  static dim3 group_dim() { return blockDim; }
  static unsigned num_threads() { return blockDim.x * blockDim.y * blockDim.z; }
  static unsigned size() { return num_threads(); }
};

class cluster_group {
 public:
  EMULATOR_BARRIERS(emulator::Scope::cluster)
  static dim3 block_index() { return emulator::block_of_cluster(); }
  static unsigned block_rank() { return emulator::rank_in_cluster(); }
  static dim3 dim_blocks() { return emulator::cluster_dim(); }
  static unsigned num_blocks() { return dim_blocks().x * dim_blocks().y * dim_blocks().z; }
  static dim3 thread_index() {
    const uint3 block = emulator::block_of_cluster();
    return {block.x * blockDim.x + threadIdx.x, block.y * blockDim.y + threadIdx.y,
            block.z * blockDim.z + threadIdx.z};
  }
  static dim3 dim_threads() {
    const dim3 blocks = dim_blocks();
    return {blocks.x * blockDim.x, blocks.y * blockDim.y, blocks.z * blockDim.z};
  }
  static unsigned thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned size() { return num_threads(); }

  template <typename T>
  static T* map_shared_rank(T* address, int rank, EMULATOR_HERE) {
    const volatile void* own = address;
    return static_cast<T*>(emulator::map_to_peer(const_cast<const void*>(own), unsigned(rank), where));
  }
  static unsigned query_shared_rank(const void* address, EMULATOR_HERE) {
    return emulator::rank_of_owner(address, where);
  }
};

class grid_group {
 public:
  EMULATOR_BARRIERS(emulator::Scope::grid)
  static bool is_valid() { return emulator::is_cooperative(); }
  static dim3 block_index() { return blockIdx; }
  static std::uint64_t block_rank() {
    return (std::uint64_t(blockIdx.z) * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x;
  }
  static dim3 dim_blocks() { return gridDim; }
  static dim3 group_dim() { return gridDim; }
  static std::uint64_t num_blocks() { return std::uint64_t(gridDim.x) * gridDim.y * gridDim.z; }
  static unsigned long long thread_rank() {
    return block_rank() * thread_block::num_threads() + thread_block::thread_rank();
  }
  static unsigned long long num_threads() { return num_blocks() * thread_block::num_threads(); }
  static unsigned long long size() { return num_threads(); }
  static dim3 cluster_index() { return emulator::cluster_of_grid(); }
  static dim3 dim_clusters() { return __clusterGridDimInClusters(); }
  static std::uint64_t num_clusters() { return num_blocks() / cluster_group::num_blocks(); }
  static std::uint64_t cluster_rank() {
    const dim3 all = dim_clusters(), own = cluster_index();
    return (std::uint64_t(own.z) * all.y + own.y) * all.x + own.x;
  }
};
#undef EMULATOR_BARRIERS

inline thread_block this_thread_block() { return {}; }

// Memory for tiles of more than one warp, which devices of compute capability 8.0 and later do not use.
template <unsigned threads = 1024>
struct block_tile_memory {
  char bytes[8 * threads];
};
template <unsigned threads>
thread_block this_thread_block(block_tile_memory<threads>&) {
  return {};
}

inline cluster_group this_cluster() { return {}; }
inline grid_group this_grid() { return {}; }

}  // namespace cooperative_groups
EMULATOR_END
