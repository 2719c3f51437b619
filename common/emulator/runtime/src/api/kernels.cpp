#include "kernels.h"

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string>

#include "../report/call.h"

namespace emulator {
namespace {

int shared_carveout = -1;  // percent; -1: the driver's choice

std::set<const void*>& kernels_with_any_cluster_size() {
  static auto& all = *new std::set<const void*>;  // outlives every static object
  return all;
}

std::map<const void*, KnownKernel>& known_kernels() {
  static auto& all = *new std::map<const void*, KnownKernel>;  // outlives every static object
  return all;
}

// By cudaFuncSetAttribute, and by the name of the kernel; those whose names are unknown have none.
std::map<std::string, std::size_t>& allowed_by_name() {
  static auto& all = *new std::map<std::string, std::size_t>;  // outlives every static object
  return all;
}

// The threads per block that __launch_bounds__ allow, by the name of the kernel.
std::map<std::string, long long>& launch_bounds() {
  static auto& all = *new std::map<std::string, long long>;  // outlives every static object
  return all;
}

// "scale" of "ns::scale<float, 4>".
std::string base_name(std::string name) {
  name = name.substr(0, name.find('<'));
  const auto is_of_name = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) || c == '_'; };
  const auto last = std::find_if(name.rbegin(), name.rend(), is_of_name);
  return {std::find_if_not(last, name.rend(), is_of_name).base(), last.base()};
}

std::string name_of_kernel(const void* kernel) {
  const KnownKernel* known = find_kernel(kernel);
  return known ? base_name(known->name) : "";
}

}  // namespace

void new_kernel(const void* kernel, const KnownKernel& known) {
  KnownKernel& kept = known_kernels().emplace(kernel, known).first->second;
  if (!kept.name[0]) kept = known;
}

const KnownKernel* find_kernel(const void* kernel) {
  const auto found = known_kernels().find(kernel);
  return found == known_kernels().end() ? nullptr : &found->second;
}

std::size_t allowed_dynamic_shared(const char* kernel, bool is_variable) {
  const std::string launched = base_name(kernel);
  std::size_t most = 0;
  for (const auto& [name, bytes] : allowed_by_name())
    if (is_variable || name.empty() || name == launched) most = std::max(most, bytes);
  return most;
}

bool keep_launch_bounds(const char* kernel, long long threads, long long, long long) {
  return launch_bounds()[kernel] = threads, true;
}

int most_threads(const char* kernel) {
  const int most = device().maxThreadsPerBlock;
  const auto found = launch_bounds().find(base_name(kernel));
  return found == launch_bounds().end() ? most : int(std::min<long long>(most, found->second));
}
int most_threads(const void* kernel) { return most_threads(name_of_kernel(kernel).c_str()); }

void forget_function_attributes() {
  allowed_by_name().clear();
  shared_carveout = -1;
  kernels_with_any_cluster_size().clear();
}

bool allows_any_cluster_size(const void* kernel) {
  const auto& allowed = kernels_with_any_cluster_size();
  return kernel ? allowed.count(kernel) > 0 : !allowed.empty();
}

// Registers, static shared memory and local memory are a compiler's choice: 0 here.
cudaFuncAttributes function_attributes(const void* kernel) {
  const cudaDeviceProp d = device();
  cudaFuncAttributes attributes = {};
  attributes.maxThreadsPerBlock = most_threads(kernel);
  attributes.maxDynamicSharedSizeBytes = int(std::max(
      d.sharedMemPerBlock, allowed_dynamic_shared(name_of_kernel(kernel).c_str(), !find_kernel(kernel))));
  attributes.preferredShmemCarveout = shared_carveout;
  attributes.ptxVersion = attributes.binaryVersion = 10 * d.major + d.minor;
  return attributes;
}

cudaError_t set_function_attribute(const void* kernel, cudaFuncAttribute attribute, int value) {
  if (attribute == cudaFuncAttributeNonPortableClusterSizeAllowed) {
    auto& allowed = kernels_with_any_cluster_size();
    if (value)
      allowed.insert(kernel);
    else
      allowed.erase(kernel);
  }
  if (attribute == cudaFuncAttributePreferredSharedMemoryCarveout) {
    if (value < -1 || value > 100) return fail(cudaErrorInvalidValue);
    return shared_carveout = value, cudaSuccess;
  }
  if (attribute != cudaFuncAttributeMaxDynamicSharedMemorySize) return cudaSuccess;
  if (value < 0 || std::size_t(value) > device().sharedMemPerBlockOptin) return fail(cudaErrorInvalidValue);
  return allowed_by_name()[name_of_kernel(kernel)] = std::size_t(value), cudaSuccess;
}

int resident_blocks(int threads, std::size_t shared) {
  const cudaDeviceProp d = device();
  if (threads > d.maxThreadsPerBlock || shared > d.sharedMemPerBlockOptin) return 0;
  const int whole_warps = (threads + d.warpSize - 1) / d.warpSize * d.warpSize;
  const int by_shared = int(d.sharedMemPerMultiprocessor / (shared + d.reservedSharedMemPerBlock));
  return std::min({d.maxThreadsPerMultiProcessor / whole_warps, d.maxBlocksPerMultiProcessor, by_shared});
}

std::size_t available_shared(int blocks, int threads) {
  const cudaDeviceProp d = device();
  if (resident_blocks(threads, 0) < blocks) return 0;
  const std::size_t each = d.sharedMemPerMultiprocessor / std::size_t(blocks) - d.reservedSharedMemPerBlock;
  return std::min(each, d.sharedMemPerBlockOptin);
}

}  // namespace emulator
