// Launches by function call, and how many clusters the device can run.
#include "emulator/launch_api.h"

#include <algorithm>
#include <string>
#include <utility>

#include "../report/call.h"
#include "../report/launch_limits.h"

namespace emulator {
namespace {

unsigned count_blocks(dim3 cluster) { return std::max(1u, cluster.x * cluster.y * cluster.z); }

// These make the launch record an event, or change a graph.
bool is_unsupported(cudaLaunchAttributeID attribute) {
  return attribute == cudaLaunchAttributeProgrammaticEvent ||
         attribute == cudaLaunchAttributeLaunchCompletionEvent ||
         attribute == cudaLaunchAttributeDeviceUpdatableKernelNode;
}

}  // namespace

cudaError_t check_launch_config(const cudaLaunchConfig_t* config) {
  if (!config || (config->numAttrs && !config->attrs)) return fail(cudaErrorInvalidValue);
  for (unsigned i = 0; i < config->numAttrs; i++)
    if (is_unsupported(config->attrs[i].id)) return fail(cudaErrorNotSupported);
  return cudaSuccess;
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

cudaError_t submit_and_return(LaunchInfo info) {
  const cudaError_t error = submit(std::move(info));
  if (error) host_checked_error();
  return error;
}

cudaError_t launch_by_address(const char* function, const void* kernel, const Configuration& configuration,
                              void** arguments) {
  refuse_in_kernels();
  const Call call(function, configuration.where);
  if (sticky_error()) return sticky_error();
  if (const KnownKernel* known = find_kernel(kernel))
    return submit_and_return(known->prepare(*known, kernel, configuration, arguments));
  add_call_finding(Check::launch, "unknown kernel", kernel,
                   std::string(function) + " is given an address that is not that of a kernel",
                   "pass a kernel, or a kernel cast to void* in a file that declares it");
  return fail(cudaErrorInvalidDeviceFunction);
}

// All multiprocessors count as neighbours: on a GPU, those of a cluster must belong to one part of it.
cudaError_t count_active_clusters(int* clusters, const void* function, const cudaLaunchConfig_t* config) {
  if (const cudaError_t error = check_launch_config(config)) return error;
  const Configuration configuration = configuration_of(*config, function, {});
  const auto refusal = refusal_of_clusters(configuration, device());
  if (refusal && std::string(refusal->problem) != "no room for a cluster") return fail(refusal->error);
  const unsigned most = most_blocks_in_clusters(config->blockDim, config->dynamicSmemBytes, device());
  *clusters = int(most / count_blocks(configuration.cluster));
  return cudaSuccess;
}

cudaError_t find_largest_cluster(int* blocks, const void* function, const cudaLaunchConfig_t* config) {
  if (const cudaError_t error = check_launch_config(config)) return error;
  const auto most = int(most_blocks_in_clusters(config->blockDim, config->dynamicSmemBytes, device()));
  int size = int(allows_any_cluster_size(function) ? kLargestCluster : kPortableCluster);
  while (size > 1 && size > most) size /= 2;
  return *blocks = size, cudaSuccess;
}

}  // namespace emulator
