// How the work of a sequence is divided among chains and blocks, and the launches.
#include <algorithm>
#include <string>

#include "kernels.h"
#include "layout.h"
#include "work.h"

namespace {

template <typename Cell>
Kernels find_kernels(Scalar scalar) {
  switch (scalar) {
    case Scalar::kFloat:
      return kernels_of<Cell, Scalar::kFloat>();
    case Scalar::kTf32:
      return kernels_of<Cell, Scalar::kTf32>();
    case Scalar::kHalf:
      return kernels_of<Cell, Scalar::kHalf>();
    case Scalar::kBfloat16:
      return kernels_of<Cell, Scalar::kBfloat16>();
    case Scalar::kDouble:
      return kernels_of<Cell, Scalar::kDouble>();
  }
  return {};
}

Kernels find_kernels(const Plan& plan) {
  return with_cell(plan.cell, [&](auto cell) { return find_kernels<decltype(cell)>(plan.scalar); });
}

int attribute(cudaDeviceAttr name) {
  int device = 0, value = 0;
  cudaGetDevice(&device);
  cudaDeviceGetAttribute(&value, name, device);
  return value;
}

// A launch of `chains` chains, with its attributes. The attributes point into this object.
struct Launch {
  cudaLaunchConfig_t config = {};
  cudaLaunchAttribute attribute = {};

  Launch(const Plan& plan, int chains, cudaStream_t stream) {
    config.gridDim = chains * plan.partition.blocks;
    config.blockDim = kThreads;
    config.dynamicSmemBytes = plan.shared_bytes;
    config.stream = stream;
    config.attrs = &attribute;
    if (plan.partition.blocks == 1) return;
    config.numAttrs = 1;
    if (plan.partition.exchange == Exchange::kCluster) {
      attribute.id = cudaLaunchAttributeClusterDimension;
      attribute.val.clusterDim.x = plan.partition.blocks;
      attribute.val.clusterDim.y = attribute.val.clusterDim.z = 1;
    } else {
      attribute.id = cudaLaunchAttributeCooperative;
      attribute.val.cooperative = 1;
    }
  }
  Launch(const Launch&) = delete;
};

const void* kernel_of(const Plan& plan) {
  const int held_tiles = plan.partition.held_tiles;
  const KernelPair pair = find_kernels(plan).pairs[held_tiles / 2];
  return plan.backward ? pair.backward : pair.forward;
}

cudaError_t allow_resources(const Plan& plan) {
  const void* kernel = kernel_of(plan);
  const cudaError_t error =
      cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize, plan.shared_bytes);
  if (error || plan.partition.blocks <= 8 || plan.partition.exchange != Exchange::kCluster) return error;
  return cudaFuncSetAttribute(kernel, cudaFuncAttributeNonPortableClusterSizeAllowed, 1);
}

// Sets the plan's sizes in bytes for its partition.
void measure(Plan& plan) {
  const Kernels kernels = find_kernels(plan);
  const int64_t blocks = int64_t(plan.chains_at_once) * plan.partition.blocks;
  const int64_t counters = plan.chains_at_once * int64_t(kArrivalBytes);
  int64_t exchange;
  if (plan.backward) {
    const BackwardLayout layout(plan.partition, kernels.gates, kernels.scalar_bytes, kernels.math_bytes,
                                kernels.held);
    plan.shared_bytes = layout.bytes;
    exchange = blocks * 2 * layout.received_size(plan.partition) * kernels.math_bytes;
  } else {
    const ForwardLayout layout(plan.partition, kernels.gates, kernels.scalar_bytes, kernels.math_bytes,
                               kernels.held);
    plan.shared_bytes = layout.bytes;
    exchange = plan.chains_at_once * int64_t(2 * plan.partition.rows) * layout.tiling.row_bytes;
  }
  plan.workspace_bytes = plan.partition.exchange == Exchange::kGrid ? counters + exchange : 0;
}

// How many chains the device holds at once, or 0 if none.
int count_chains_at_once(const Plan& plan) {
  if (allow_resources(plan) != cudaSuccess) return cudaGetLastError(), 0;
  const Launch launch(plan, 1, nullptr);
  int count = 0;
  if (plan.partition.blocks > 1 && plan.partition.exchange == Exchange::kCluster) {
    if (cudaOccupancyMaxActiveClusters(&count, kernel_of(plan), &launch.config)) return cudaGetLastError(), 0;
    return count;
  }
  if (cudaOccupancyMaxActiveBlocksPerMultiprocessor(&count, kernel_of(plan), kThreads, plan.shared_bytes))
    return cudaGetLastError(), 0;
  return count * attribute(cudaDevAttrMultiProcessorCount) / plan.partition.blocks;
}

Tiling tiling_of(const Plan& plan) {
  const Kernels kernels = find_kernels(plan);
  const int of_block = kernels.gates * plan.partition.units;
  const int of_chain = plan.partition.blocks * plan.partition.units;
  if (plan.backward)
    return Tiling(of_chain, of_block * kernels.scalar_bytes, plan.partition.held_tiles, kernels.held);
  return Tiling(of_block, of_chain * kernels.scalar_bytes, plan.partition.held_tiles, kernels.held);
}

// An estimate of the time of a step in nanoseconds, by which plans are compared. The numbers are the least
// squares of the times of driver.cu (common/studies/sequence) for 128 plans on an H200. On average, the
// estimate is off by 7 %.
double estimate_step(const Plan& plan) {
  const Partition& partition = plan.partition;
  const bool uses_tensor_cores = plan.scalar != Scalar::kFloat && plan.scalar != Scalar::kDouble;
  const Tiling tiling = tiling_of(plan);
  const int held = tiling.multiplied() - tiling.stored;
  const double multiply =
      uses_tensor_cores ? 58.0 * held + 107.0 * tiling.stored : 176.0 * held + 278.0 * tiling.stored;
  const Kernels kernels = find_kernels(plan);
  const int sources = plan.backward ? tiling.split * kernels.math_bytes : kernels.scalar_bytes;
  const double received = double(partition.rows) * partition.units * partition.blocks * sources / 1000;
  const double exchange = partition.exchange == Exchange::kNone      ? 0
                          : partition.exchange == Exchange::kCluster ? 130 + 13 * received
                                                                     : 1470 + 41 * received;
  return 210 + exchange + partition.rows / kGroup * multiply + 570.0 * rounds_of(partition);
}

// Chooses which fragments of the weights are in registers: as many as possible, with as little
// padding as possible.
void hold_weights(Plan& plan) {
  auto cost = [&plan](int tiles) {
    plan.partition.held_tiles = tiles;
    const Tiling tiling = tiling_of(plan);
    return 2 * tiling.stored + tiling.multiplied();
  };
  int best = 1;
  for (int tiles : {2, 4})
    if (cost(tiles) < cost(best)) best = tiles;
  plan.partition.held_tiles = best;
}

// Plans a chain of so many blocks, or returns false if it does not fit.
bool plan_chains(Plan& plan, int blocks, int shared_bytes_of_block) {
  const int scalar_bytes = find_kernels(plan).scalar_bytes;
  Partition& partition = plan.partition;
  partition.blocks = blocks;
  partition.units = round_up(divide_up(int(plan.sizes.state), blocks), kVector / scalar_bytes);
  if (partition.units > kThreads) return false;
  // Units are padded, so fewer blocks may have all of them.
  if (plan.rung == Rung::kGrid) partition.blocks = divide_up(int(plan.sizes.state), partition.units);
  partition.exchange = partition.blocks == 1         ? Exchange::kNone
                       : plan.rung == Rung::kCluster ? Exchange::kCluster
                                                     : Exchange::kGrid;
  partition.rows = kGroup;
  hold_weights(plan);
  plan.chains_at_once = 1;
  measure(plan);
  if (plan.shared_bytes > shared_bytes_of_block) return false;
  plan.chains_at_once = count_chains_at_once(plan);
  if (plan.chains_at_once == 0) return false;
  // More rows in a chain only if the device cannot hold enough chains.
  const int groups = divide_up(divide_up(int(plan.sizes.batch), kGroup), plan.chains_at_once);
  for (partition.rows = groups * kGroup;; partition.rows -= kGroup) {
    measure(plan);
    if (plan.shared_bytes <= shared_bytes_of_block) break;
  }
  plan.chains = divide_up(int(plan.sizes.batch), partition.rows);
  plan.chains_at_once = std::min(plan.chains, count_chains_at_once(plan));
  if (plan.chains_at_once == 0) return false;
  measure(plan);
  return true;
}

template <typename Arrays>
cudaError_t launch_chains(const Plan& plan, const Arrays& arrays, void* workspace, cudaStream_t stream) {
  if (const cudaError_t error = allow_resources(plan)) return error;
  // Clusters that the device cannot hold at once wait their turn. The blocks of a cooperative launch all run
  // at once.
  const bool all_at_once = plan.workspace_bytes == 0;
  const int chains = all_at_once ? plan.chains : plan.chains_at_once;
  for (int first = 0; first < plan.chains; first += chains) {
    if (plan.workspace_bytes)
      if (const cudaError_t error =
              cudaMemsetAsync(workspace, 0, plan.chains_at_once * size_t(kArrivalBytes), stream))
        return error;
    Work<Arrays> work{arrays, plan.sizes, plan.partition, first, nullptr, nullptr};
    if (plan.workspace_bytes) {
      work.arrivals = static_cast<unsigned*>(workspace);
      work.exchange = static_cast<char*>(workspace) + plan.chains_at_once * size_t(kArrivalBytes);
    }
    const Launch launch(plan, std::min(chains, plan.chains - first), stream);
    void* arguments[] = {&work};
    if (const cudaError_t error = cudaLaunchKernelExC(&launch.config, kernel_of(plan), arguments))
      return error;
  }
  return cudaSuccess;
}

}  // namespace

std::optional<Plan> make_plan(Rung rung, CellKind cell, Scalar scalar, Sizes sizes, bool backward,
                              std::string& reason, int blocks) {
  const int capability = attribute(cudaDevAttrComputeCapabilityMajor);
  const int needed = rung == Rung::kCluster ? 9 : 8;
  if (capability < needed) {
    reason = "it needs a GPU of compute capability " + std::to_string(needed) + ".0, and this one has " +
             std::to_string(capability) + '.' + std::to_string(attribute(cudaDevAttrComputeCapabilityMinor));
    return std::nullopt;
  }
  const int shared_bytes = attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  std::optional<Plan> best;
  for (int count = 1; count <= (rung == Rung::kCluster ? kBlocksOfCluster : 128); count *= 2) {
    if ((blocks && count != blocks) || count > sizes.state) continue;
    Plan plan{rung, cell, scalar, backward, sizes, {}, 0, 0, 0, 0, 0};
    if (!plan_chains(plan, count, shared_bytes)) continue;
    plan.step_ns = estimate_step(plan) * divide_up(plan.chains, plan.chains_at_once);
    if (!best || plan.step_ns < best->step_ns) best = plan;
  }
  if (best) return best;
  const std::string chain = blocks ? "a chain of " + std::to_string(blocks) + " blocks cannot"
                            : rung == Rung::kCluster ? "no chain of up to 16 blocks can"
                                                     : "no chain of up to 128 blocks can";
  reason = "the recurrent weights of " + std::to_string(sizes.state) + " units do not fit on chip: " + chain +
           " hold them, with " + std::to_string(shared_bytes / 1024) + " KB of shared memory a block";
  return std::nullopt;
}

cudaError_t launch(const Plan& plan, const ForwardArrays<void>& arrays, void* workspace,
                   cudaStream_t stream) {
  return launch_chains(plan, arrays, workspace, stream);
}

cudaError_t launch(const Plan& plan, const BackwardArrays<void>& arrays, void* workspace,
                   cudaStream_t stream) {
  return launch_chains(plan, arrays, workspace, stream);
}
