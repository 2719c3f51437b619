// Launches by function call: of a kernel's address, cooperative ones, and those with attributes, such as
// clusters.
#pragma once

#include <cstddef>
#include <tuple>
#include <type_traits>
#include <utility>

#include "emulator/kernel_api.h"

EMULATOR_BEGIN
namespace emulator {

// A configuration, and the place of the call that it is passed to.
struct LaunchConfigHere {
  const cudaLaunchConfig_t* config;
  Position where;
  LaunchConfigHere(const cudaLaunchConfig_t* config_, Position where_ = Position::current())
      : config(config_), where(where_) {}
};

cudaError_t check_launch_config(const cudaLaunchConfig_t* config);
Configuration configuration_of(const cudaLaunchConfig_t& config, const void* kernel, Position where);
// The caller gets the error of a launch that is refused, and can handle it: that is only a warning.
cudaError_t submit_and_return(LaunchInfo info);
cudaError_t launch_by_address(const char* function, const void* kernel, const Configuration& configuration,
                              void** arguments);

// An argument as the kernel gets it: a copy, or the host's variable if the kernel may write to it.
template <typename Parameter, typename Argument>
auto as_parameter(Argument&& argument) {
  constexpr bool is_output =
      std::is_lvalue_reference_v<Parameter> && !std::is_const_v<std::remove_reference_t<Parameter>>;
  if constexpr (is_output)
    return reference(argument);
  else
    return std::decay_t<Parameter>(std::forward<Argument>(argument));
}

cudaError_t count_active_clusters(int* clusters, const void* function, const cudaLaunchConfig_t* config);
cudaError_t find_largest_cluster(int* blocks, const void* function, const cudaLaunchConfig_t* config);

}  // namespace emulator

inline cudaError_t cudaLaunchKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                    std::size_t shared = 0, cudaStream_t stream = nullptr, EMULATOR_HERE) {
  return emulator::launch_by_address("cudaLaunchKernel", kernel, {grid, block, shared, stream, where},
                                     arguments);
}
template <typename... Parameters>
cudaError_t cudaLaunchKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block, void** arguments,
                             std::size_t shared = 0, cudaStream_t stream = nullptr, EMULATOR_HERE) {
  const auto* address = reinterpret_cast<const void*>(emulator::kernel_address(kernel));
  return cudaLaunchKernel(address, grid, block, arguments, shared, stream, where);
}

inline cudaError_t cudaLaunchCooperativeKernel(const void* kernel, dim3 grid, dim3 block, void** arguments,
                                               std::size_t shared = 0, cudaStream_t stream = nullptr,
                                               EMULATOR_HERE) {
  emulator::Configuration configuration{grid, block, shared, stream, where};
  configuration.is_cooperative = true;
  return emulator::launch_by_address("cudaLaunchCooperativeKernel", kernel, configuration, arguments);
}
template <typename... Parameters>
cudaError_t cudaLaunchCooperativeKernel(void (*kernel)(Parameters...), dim3 grid, dim3 block,
                                        void** arguments, std::size_t shared = 0,
                                        cudaStream_t stream = nullptr, EMULATOR_HERE) {
  const auto* address = reinterpret_cast<const void*>(emulator::kernel_address(kernel));
  return cudaLaunchCooperativeKernel(address, grid, block, arguments, shared, stream, where);
}

inline cudaError_t cudaLaunchKernelExC(const cudaLaunchConfig_t* config, const void* kernel, void** arguments,
                                       EMULATOR_HERE) {
  if (const cudaError_t error = emulator::check_launch_config(config)) return error;
  const auto configuration = emulator::configuration_of(*config, kernel, where);
  return emulator::launch_by_address("cudaLaunchKernelExC", kernel, configuration, arguments);
}

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(emulator::LaunchConfigHere here, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  emulator::refuse_in_kernels();
  if (const cudaError_t error = emulator::check_launch_config(here.config)) return error;
  const auto* address = reinterpret_cast<const void*>(emulator::kernel_address(kernel));
  const auto configuration = emulator::configuration_of(*here.config, address, here.where);
  const emulator::KnownKernel& known = *emulator::find_kernel(address);
  return emulator::submit_and_return(emulator::prepare_launch(
      known.name[0] ? known.name : "a kernel", known.parameters, kernel, configuration,
      std::make_tuple(emulator::as_parameter<Parameters>(std::forward<Arguments>(arguments))...)));
}

// A kernel starts when the work before it in its stream is done, so there is nothing to wait for.
inline void cudaGridDependencySynchronize() {}
inline void cudaTriggerProgrammaticLaunchCompletion() {}

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
