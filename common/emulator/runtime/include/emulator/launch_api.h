// Launches by function call: cooperative ones, and those with attributes, such as clusters.
#pragma once

#include <cstddef>

#include "emulator/kernels.h"

enum cudaLaunchAttributeID {
  cudaLaunchAttributeIgnore = 0,
  cudaLaunchAttributeAccessPolicyWindow = 1,
  cudaLaunchAttributeCooperative = 2,
  cudaLaunchAttributeSynchronizationPolicy = 3,
  cudaLaunchAttributeClusterDimension = 4,
  cudaLaunchAttributeClusterSchedulingPolicyPreference = 5,
  cudaLaunchAttributeProgrammaticStreamSerialization = 6,
  cudaLaunchAttributePriority = 8,
  cudaLaunchAttributeMemSyncDomain = 10,
  cudaLaunchAttributePreferredSharedMemoryCarveout = 14,
};

enum cudaClusterSchedulingPolicy {
  cudaClusterSchedulingPolicyDefault = 0,
  cudaClusterSchedulingPolicySpread = 1,
  cudaClusterSchedulingPolicyLoadBalancing = 2,
};

union cudaLaunchAttributeValue {
  char pad[64];
  int cooperative;
  struct {
    unsigned int x, y, z;
  } clusterDim;
  cudaClusterSchedulingPolicy clusterSchedulingPolicyPreference;
  int programmaticStreamSerializationAllowed;
  int priority;
  unsigned int sharedMemCarveout;
};

struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  char pad[8 - sizeof(cudaLaunchAttributeID)];
  cudaLaunchAttributeValue val;
};

struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  std::size_t dynamicSmemBytes;
  cudaStream_t stream;
  cudaLaunchAttribute* attrs;
  unsigned int numAttrs;
};

EMULATOR_BEGIN
namespace emulator {

// A configuration, and the place of the call that it is passed to.
struct LaunchConfigHere {
  const cudaLaunchConfig_t* config;
  Position where;
  LaunchConfigHere(const cudaLaunchConfig_t* config_, Position where_ = Position::current())
      : config(config_), where(where_) {}
};

bool is_valid(const cudaLaunchConfig_t* config);  // sets the last error if it is not
Configuration configuration_of(const cudaLaunchConfig_t& config, const void* function, Position where);
cudaError_t submit_and_check(LaunchInfo info);
cudaError_t launch_by_address(const void* function, const Configuration& configuration, void** arguments);

cudaError_t count_active_clusters(int* clusters, const void* function, const cudaLaunchConfig_t* config);
cudaError_t find_largest_cluster(int* blocks, const void* function, const cudaLaunchConfig_t* config);

}  // namespace emulator

template <typename Kernel>
cudaError_t cudaLaunchKernel(Kernel* kernel, dim3 grid, dim3 block, void** arguments, std::size_t shared = 0,
                             cudaStream_t stream = nullptr, EMULATOR_HERE) {
  return emulator::launch_by_address(reinterpret_cast<const void*>(kernel),
                                     {grid, block, shared, stream, where}, arguments);
}

template <typename Kernel>
cudaError_t cudaLaunchCooperativeKernel(Kernel* kernel, dim3 grid, dim3 block, void** arguments,
                                        std::size_t shared = 0, cudaStream_t stream = nullptr,
                                        EMULATOR_HERE) {
  emulator::Configuration configuration{grid, block, shared, stream, where};
  configuration.is_cooperative = true;
  return emulator::launch_by_address(reinterpret_cast<const void*>(kernel), configuration, arguments);
}

inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments,
                                       EMULATOR_HERE) {
  if (!emulator::is_valid(config)) return cudaErrorInvalidValue;
  return emulator::launch_by_address(kernel, emulator::configuration_of(*config, kernel, where), arguments);
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(emulator::LaunchConfigHere here, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  emulator::refuse_in_kernels();
  if (!emulator::is_valid(here.config)) return cudaErrorInvalidValue;
  auto info = emulator::make_launch(kernel, std::forward<Arguments>(arguments)...);
  info.configuration =
      emulator::configuration_of(*here.config, reinterpret_cast<const void*>(kernel), here.where);
  return emulator::submit_and_check(std::move(info));
}

template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, Kernel* kernel, const cudaLaunchConfig_t* config) {
  return emulator::count_active_clusters(clusters, reinterpret_cast<const void*>(kernel), config);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialClusterSize(int* blocks, Kernel* kernel,
                                                 const cudaLaunchConfig_t* config) {
  return emulator::find_largest_cluster(blocks, reinterpret_cast<const void*>(kernel), config);
}
EMULATOR_END
