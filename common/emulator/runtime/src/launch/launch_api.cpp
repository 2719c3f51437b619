// Launches by function call, and how many clusters the device can run.
#include "emulator/launch_api.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <set>

#include "../api/call.h"
#include "launch_limits.h"

namespace emulator {
namespace {

struct KnownKernels {
  std::mutex mutex;
  std::map<const void*, KernelInfo> infos;
  std::set<const void*> with_any_cluster_size;
};
KnownKernels& known_kernels() {
  static auto& all = *new KnownKernels;
  return all;
}

unsigned count_blocks(dim3 cluster) { return std::max(1u, cluster.x * cluster.y * cluster.z); }

}  // namespace

void record_kernel(const void* function, const KernelInfo& info) {
  const std::lock_guard lock(known_kernels().mutex);
  known_kernels().infos.insert_or_assign(function, info);
}

KernelInfo info_of_kernel(const void* function) {
  const std::lock_guard lock(known_kernels().mutex);
  const auto found = known_kernels().infos.find(function);
  return found == known_kernels().infos.end() ? KernelInfo{"that was passed by its address", "", nullptr}
                                              : found->second;
}

void allow_any_cluster_size(const void* function, bool is_allowed) {
  const std::lock_guard lock(known_kernels().mutex);
  if (is_allowed)
    known_kernels().with_any_cluster_size.insert(function);
  else
    known_kernels().with_any_cluster_size.erase(function);
}

bool allows_any_cluster_size(const void* function) {
  const std::lock_guard lock(known_kernels().mutex);
  const auto& allowed = known_kernels().with_any_cluster_size;
  return function ? allowed.count(function) > 0 : !allowed.empty();
}

bool is_valid(const cudaLaunchConfig_t* config) {
  if (config && (config->attrs || !config->numAttrs)) return true;
  fail(cudaErrorInvalidValue);
  return false;
}

Configuration configuration_of(const cudaLaunchConfig_t& config, const void* function, Position where) {
  Configuration configuration{config.gridDim, config.blockDim, config.dynamicSmemBytes, config.stream, where};
  configuration.allows_any_cluster_size = allows_any_cluster_size(function);
  for (unsigned i = 0; i < config.numAttrs; i++) {
    const cudaLaunchAttribute& attribute = config.attrs[i];
    const auto& cluster = attribute.val.clusterDim;
    if (attribute.id == cudaLaunchAttributeCooperative)
      configuration.is_cooperative = attribute.val.cooperative != 0;
    if (attribute.id == cudaLaunchAttributeClusterDimension)
      configuration.cluster = {cluster.x, cluster.y, cluster.z};
  }
  return configuration;
}

cudaError_t submit_and_check(LaunchInfo info) {
  const cudaError_t before = cudaGetLastError();
  submit(std::move(info));
  const cudaError_t error = cudaPeekAtLastError();
  if (error == cudaSuccess && before != cudaSuccess) fail(before);
  return error;
}

cudaError_t launch_by_address(const void* function, const Configuration& configuration, void** arguments) {
  refuse_in_kernels();
  const KernelInfo kernel = info_of_kernel(function);
  if (!kernel.make_launch) {
    const Call call("a launch", configuration.where);
    add_call_finding(Check::launch, "unknown kernel", function,
                     "the emulator does not know the parameters of this kernel",
                     "pass the kernel by its name, in a file that declares it");
    return fail(cudaErrorInvalidDeviceFunction);
  }
  LaunchInfo info = kernel.make_launch(function, arguments);
  info.configuration = configuration;
  return submit_and_check(std::move(info));
}

// All multiprocessors count as neighbours: on a GPU, those of a cluster must belong to one part of it.
cudaError_t count_active_clusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  if (!is_valid(config)) return cudaErrorInvalidValue;
  const Configuration configuration = configuration_of(*config, function, {});
  const auto refusal = refusal_of_clusters(configuration, device());
  if (refusal && std::string(refusal->problem) != "no room for a cluster") return fail(refusal->error);
  const dim3 block = config->blockDim;
  const int resident = resident_blocks(int(block.x * block.y * block.z), config->dynamicSmemBytes);
  *clusters = resident * device().multiProcessorCount / int(count_blocks(configuration.cluster));
  return cudaSuccess;
}

cudaError_t find_largest_cluster(int* blocks, const void* function, const cudaLaunchConfig_t* config) {
  if (!is_valid(config)) return cudaErrorInvalidValue;
  const dim3 block = config->blockDim;
  const int resident = resident_blocks(int(block.x * block.y * block.z), config->dynamicSmemBytes) *
                       device().multiProcessorCount;
  int size = int(allows_any_cluster_size(function) ? kLargestCluster : kPortableCluster);
  while (size > 1 && size > resident) size /= 2;
  return *blocks = size, cudaSuccess;
}

}  // namespace emulator
