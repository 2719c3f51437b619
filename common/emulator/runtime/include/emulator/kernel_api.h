// CUDA's runtime API for kernels: their attributes, and how many blocks a device runs at once.
#pragma once

#include "emulator/runtime_api.h"

#include "emulator/launch.h"
#include "emulator/runtime_api.h"

EMULATOR_BEGIN
namespace emulator {

// A kernel whose address the program takes, with the types of its parameters.
struct KnownKernel {
  const char *name, *parameters;  // "scale<float>"; "x, const y"; empty if they are unknown
  std::vector<std::size_t> sizes;
  LaunchInfo (*prepare)(const KnownKernel& self, const void* kernel, const Configuration& configuration,
                        void** arguments);
};
void new_kernel(const void* kernel, const KnownKernel& known);
const KnownKernel* find_kernel(const void* kernel);  // null if no part of the program took its address

template <typename T>
auto argument_at(void* address) {
  if constexpr (std::is_reference_v<T>)
    return reference(**static_cast<std::remove_reference_t<T>**>(address));  // passed like a pointer
  else
    return *static_cast<std::remove_cv_t<T>*>(address);
}

template <std::size_t... I, typename... Parameters>
LaunchInfo prepare_from(std::index_sequence<I...>, void (*kernel)(Parameters...), const KnownKernel& known,
                        const Configuration& configuration, [[maybe_unused]] void** arguments) {
  return prepare_launch(known.name[0] ? known.name : "a kernel", known.parameters, kernel, configuration,
                        std::make_tuple(argument_at<Parameters>(arguments[I])...));
}

// The rewriter puts this around a kernel that is passed to a function, cast or stored.
template <typename... Parameters>
auto kernel_address(void (*kernel)(Parameters...), const char* name = "", const char* parameters = "") {
  auto* address = reinterpret_cast<void*>(kernel);
  const auto prepare = [](const KnownKernel& self, const void* kernel, const Configuration& configuration,
                          void** arguments) {
    return prepare_from(std::index_sequence_for<Parameters...>(),
                        reinterpret_cast<void (*)(Parameters...)>(const_cast<void*>(kernel)), self,
                        configuration, arguments);
  };
  new_kernel(address, {name, parameters, {sizeof(Parameters)...}, prepare});
  return kernel;
}
template <typename Other>  // a variable with the name of a kernel
decltype(auto) kernel_address(Other&& other, const char*, const char*) {
  return std::forward<Other>(other);
}

cudaFuncAttributes function_attributes(const void* kernel);
// The threads of a block that the __launch_bounds__ of a kernel and the device allow. By name, templates have
// no bounds: those of each instance are known only when it runs.
int most_threads(const void* kernel);
int most_threads(const char* kernel);
cudaError_t set_function_attribute(const void* kernel, cudaFuncAttribute attribute, int value);
bool allows_any_cluster_size(const void* kernel);       // null: whether any kernel does
int resident_blocks(int threads, std::size_t shared);   // on one multiprocessor at once
std::size_t available_shared(int blocks, int threads);  // dynamic shared memory of each

}  // namespace emulator

template <typename Kernel>
cudaError_t cudaGetFuncBySymbol(cudaFunction_t* function, Kernel kernel) {
  return *function = reinterpret_cast<cudaFunction_t>(reinterpret_cast<std::uintptr_t>(kernel)), cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncGetName(const char** name, Kernel kernel) {
  const auto* known = emulator::find_kernel(reinterpret_cast<const void*>(kernel));
  return known && known->name[0] ? (*name = known->name, cudaSuccess)
                                 : emulator::fail(cudaErrorInvalidDeviceFunction);
}

template <typename Kernel>
cudaError_t cudaFuncSetAttribute(Kernel* kernel, cudaFuncAttribute attribute, int value) {
  return emulator::set_function_attribute(reinterpret_cast<const void*>(kernel), attribute, value);
}
template <typename Kernel>
cudaError_t cudaFuncGetAttributes(cudaFuncAttributes* attributes, Kernel kernel) {
  return *attributes = emulator::function_attributes(reinterpret_cast<const void*>(kernel)), cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetCacheConfig(Kernel, cudaFuncCache) {
  return cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaFuncSetSharedMemConfig(Kernel, cudaSharedMemConfig) {
  return cudaSuccess;
}

template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, Kernel, int threads,
                                                                   std::size_t shared, unsigned int) {
  if (threads <= 0) return emulator::fail(cudaErrorInvalidValue);
  return *blocks = emulator::resident_blocks(threads, shared), cudaSuccess;
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, Kernel kernel, int threads,
                                                          std::size_t shared) {
  return cudaOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(blocks, kernel, threads, shared,
                                                                cudaOccupancyDefault);
}
template <typename Kernel>
cudaError_t cudaOccupancyAvailableDynamicSMemPerBlock(std::size_t* bytes, Kernel, int blocks, int threads) {
  if (blocks <= 0 || threads <= 0) return emulator::fail(cudaErrorInvalidValue);
  return *bytes = emulator::available_shared(blocks, threads), cudaSuccess;
}
// Without registers to count, the block with the most resident threads is the largest of the best blocks.
template <typename SharedOf, typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(int* min_grid, int* threads,
                                                                    Kernel kernel, SharedOf shared_of,
                                                                    int limit, unsigned int) {
  const cudaDeviceProp device = emulator::device();
  const int allowed = emulator::most_threads(reinterpret_cast<const void*>(kernel));
  const int most = limit > 0 && limit < allowed ? limit : allowed;
  int best = 0;
  for (int size = most; size > 0; size -= size % device.warpSize ? size % device.warpSize : device.warpSize) {
    const int blocks = emulator::resident_blocks(size, shared_of(size));
    if (blocks * size <= best) continue;
    best = blocks * size;
    *threads = size;
    *min_grid = blocks * device.multiProcessorCount;
  }
  return best ? cudaSuccess : emulator::fail(cudaErrorInvalidValue);
}
template <typename SharedOf, typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeVariableSMem(int* min_grid, int* threads, Kernel kernel,
                                                           SharedOf shared_of, int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(min_grid, threads, kernel, shared_of, limit,
                                                                 cudaOccupancyDefault);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSizeWithFlags(int* min_grid, int* threads, Kernel kernel,
                                                        std::size_t shared, int limit, unsigned int flags) {
  const auto shared_of = [=](int) { return shared; };
  return cudaOccupancyMaxPotentialBlockSizeVariableSMemWithFlags(min_grid, threads, kernel, shared_of, limit,
                                                                 flags);
}
template <typename Kernel>
cudaError_t cudaOccupancyMaxPotentialBlockSize(int* min_grid, int* threads, Kernel kernel,
                                               std::size_t shared = 0, int limit = 0) {
  return cudaOccupancyMaxPotentialBlockSizeWithFlags(min_grid, threads, kernel, shared, limit,
                                                     cudaOccupancyDefault);
}
EMULATOR_END
