#include "launch_limits.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#include "emulator/kernel_api.h"
#include "report.h"

namespace emulator {
namespace {

struct Refused {
  Cause cause;
  std::string what, where;
  int times;
};

// Errors that the host has not checked yet, of all its threads: accessed only under emulator_one_launch.
std::vector<Refused>& unchecked() {
  static auto& all = *new std::vector<Refused>;  // outlives every static object
  return all;
}

std::string number(double value) {  // a product of sizes can be more than 64 bits hold
  char text[64];
  std::snprintf(text, sizeof(text), "%.0f", value);
  return text;
}

std::string of_axis(const char* what, int axis, unsigned size, int most) {
  std::string text = std::string(what) + "." + "xyz"[axis] + " is " + std::to_string(size) + ", at most " +
                     std::to_string(most);
  if (size > 0x7fffffffu) text += " (a negative number, or one too large for 32 bits?)";
  return text;
}

// One error for all of them, as CUDA 13.0 says on an H200. Older versions of CUDA have
// cudaErrorInvalidConfiguration for grids and blocks.
std::optional<Refusal> refusal_of_sizes(const Configuration& c, const cudaDeviceProp& device) {
  constexpr cudaError_t error = cudaErrorInvalidValue;
  const unsigned grid[] = {c.grid.x, c.grid.y, c.grid.z}, block[] = {c.block.x, c.block.y, c.block.z};
  if (std::count(grid, grid + 3, 0u))
    return Refusal{error, "empty grid", "grid " + text_of(c.grid) + " is empty: was a size zero?"};
  if (std::count(block, block + 3, 0u))
    return Refusal{error, "empty block", "block " + text_of(c.block) + " is empty: was a size zero?"};
  for (int axis = 0; axis < 3; axis++)
    if (grid[axis] > unsigned(device.maxGridSize[axis]))
      return Refusal{error, "large grid", of_axis("grid", axis, grid[axis], device.maxGridSize[axis])};
  const double threads = double(block[0]) * block[1] * block[2];
  if (threads > device.maxThreadsPerBlock)
    return Refusal{error, "many threads",
                   "it asks for " + number(threads) + " threads per block, " + text_of(c.block) +
                       "; the device allows " + std::to_string(device.maxThreadsPerBlock)};
  for (int axis = 0; axis < 3; axis++)
    if (block[axis] > unsigned(device.maxThreadsDim[axis]))
      return Refusal{error, "large block", of_axis("block", axis, block[axis], device.maxThreadsDim[axis])};
  const std::size_t shared = std::max(device.sharedMemPerBlock, c.allowed_shared);
  if (c.shared > shared)
    return Refusal{error, "dynamic shared memory",
                   "it asks for " + std::to_string(c.shared) +
                       " bytes of dynamic shared memory; a block may have " + std::to_string(shared) +
                       ", and after cudaFuncSetAttribute(kernel, " +
                       "cudaFuncAttributeMaxDynamicSharedMemorySize, ...) up to " +
                       std::to_string(device.sharedMemPerBlockOptin)};
  return std::nullopt;
}

// All blocks of a cooperative launch must be resident at once.
std::optional<Refusal> refusal_of_cooperation(const Configuration& c, std::size_t static_size,
                                              const cudaDeviceProp& device) {
  if (!c.is_cooperative) return std::nullopt;
  const auto blocks = std::uint64_t(c.grid.x) * c.grid.y * c.grid.z;
  const int per_processor = resident_blocks(int(c.block.x * c.block.y * c.block.z), c.shared + static_size);
  const auto most = std::uint64_t(per_processor) * std::uint64_t(device.multiProcessorCount);
  if (blocks <= most) return std::nullopt;
  return Refusal{cudaErrorCooperativeLaunchTooLarge, "large cooperative grid",
                 "it is cooperative and has " + std::to_string(blocks) +
                     " blocks; the device can run at most " + std::to_string(most) +
                     " of these at the same time, " + std::to_string(per_processor) + " on each of its " +
                     std::to_string(device.multiProcessorCount) +
                     " multiprocessors (EMULATOR_DEVICE=multiProcessorCount=N changes that)"};
}

void add(const Refused& one, bool is_warning, const std::string& detail) {
  for (int time = 0; time < one.times; time++)
    if (is_new(one.cause)) add(one.cause, {is_warning, one.what, one.where, detail});
}

// They become findings: warnings, or errors if the host never asked.
void add_all(bool asked) {
  for (const Refused& one : unchecked())
    add(one, asked,
        asked ? "" : "cudaGetLastError was not called: the kernel did not run, but the program continued");
  unchecked().clear();
}

std::string report() { return "the emulator found:\n" + take_report(); }

void show_at_exit() {
  const std::unique_lock lock(emulator_one_launch, std::try_to_lock);  // a thread may still be in a kernel
  if (!lock || collect_until_exit || unchecked().empty()) return;
  add_all(false);
  std::fputs(report().c_str(), stderr);
}

Refused refused(const char* kernel, const Refusal& refusal, Position where) {
  return {{Check::launch, refusal.problem, nullptr, where.file_name(), where.line(), where.column()},
          "the launch of " + std::string(kernel) + " is refused: " + refusal.what,
          line_at(where),
          1};
}

void wait_until_checked(const Refused& one) {
  [[maybe_unused]] static const int registered = std::atexit(show_at_exit);
  for (Refused& known : unchecked())
    if (!(known.cause < one.cause) && !(one.cause < known.cause)) {
      known.times++;
      return;
    }
  unchecked().push_back(one);
}

}  // namespace

std::optional<Refusal> refusal_of_launch(const Configuration& configuration, const cudaDeviceProp& device) {
  auto refusal = refusal_of_sizes(configuration, device);
  if (!refusal) refusal = refusal_of_clusters(configuration, device);
  if (!refusal) refusal = refusal_of_cooperation(configuration, 0, device);
  return refusal;
}

cudaError_t refuse_early(const char* kernel, const Configuration& configuration, const cudaDeviceProp& device,
                         Position where) {
  auto refusal = refusal_of_launch(configuration, device);
  const dim3 block = configuration.block;
  if (const long long threads = block.x * block.y * block.z; !refusal && threads > most_threads(kernel))
    refusal = refusal_of_threads(threads, most_threads(kernel));
  if (!refusal) return cudaSuccess;
  if (is_on(Check::launch)) wait_until_checked(refused(kernel, *refusal, where));
  return fail(refusal->error);
}

std::optional<Refusal> refusal_of_shared(const Configuration& configuration, std::size_t static_size,
                                         std::size_t allowed, const cudaDeviceProp& device) {
  const std::size_t dynamic_size = configuration.shared, both = static_size + dynamic_size;
  if (both <= allowed) return refusal_of_cooperation(configuration, static_size, device);
  return Refusal{cudaErrorInvalidValue, "shared memory",
                 "it needs " + std::to_string(static_size) + " bytes of static and " +
                     std::to_string(dynamic_size) + " of dynamic shared memory, " + std::to_string(both) +
                     " together; a block may have " + std::to_string(allowed)};
}

unsigned most_blocks_in_clusters(dim3 block, std::size_t shared, const cudaDeviceProp& device) {
  const auto resident = unsigned(resident_blocks(int(block.x * block.y * block.z), shared));
  return resident ? std::max(resident * unsigned(device.multiProcessorCount), kLargestCluster) : 0;
}

std::optional<Refusal> refusal_of_clusters(const Configuration& c, const cudaDeviceProp& device) {
  const dim3 grid = c.grid, cluster = c.cluster;
  const unsigned blocks = cluster.x * cluster.y * cluster.z;
  const auto error = cudaErrorInvalidClusterSize;
  if (blocks <= 1) return std::nullopt;
  if (!device.clusterLaunch)
    return Refusal{error, "no clusters", "it asks for clusters, which this device does not have"};
  const unsigned most = c.allows_any_cluster_size ? kLargestCluster : kPortableCluster;
  if (blocks > most)
    return Refusal{error, "large cluster",
                   "it asks for clusters of " + std::to_string(blocks) + " blocks; at most " +
                       std::to_string(kPortableCluster) + " are allowed, and " +
                       std::to_string(kLargestCluster) + " after cudaFuncSetAttribute(kernel, " +
                       "cudaFuncAttributeNonPortableClusterSizeAllowed, 1)"};
  if (grid.x % cluster.x || grid.y % cluster.y || grid.z % cluster.z)
    return Refusal{error, "divided cluster",
                   "its grid " + text_of(grid) + " is not a multiple of its clusters " + text_of(cluster)};
  const unsigned room = most_blocks_in_clusters(c.block, c.shared, device);
  if (blocks > room)
    return Refusal{error, "no room for a cluster",
                   "its clusters have " + std::to_string(blocks) + " blocks, but the device can run only " +
                       std::to_string(room) + " of these at the same time"};
  return std::nullopt;
}

Refusal refusal_of_two_clusters(dim3 asked, dim3 declared) {
  return {cudaErrorInvalidClusterSize, "other clusters",
          "it asks for clusters of " + text_of(asked) + " blocks, but the kernel has __cluster_dims__" +
              text_of(declared)};
}

Refusal refusal_of_threads(long long asked, long long allowed) {
  return {cudaErrorInvalidValue, "launch bounds",
          "it asks for " + std::to_string(asked) + " threads per block; its __launch_bounds__ allow " +
              std::to_string(allowed)};
}

void refuse_late(const char* kernel, const Refusal& refusal, Position where) {
  fail(refusal.error);
  if (!is_on(Check::launch)) return;
  const Refused one = refused(kernel, refusal, where);
  if (collect_until_exit)  // the launch may be long past, and the host may have asked already
    add(one, false, "");
  else
    wait_until_checked(one);
}

void host_checked_error() {
  if (running.thread) return;
  const std::lock_guard lock(emulator_one_launch);
  if (unchecked().empty()) return;
  add_all(true);
  if (!collect_until_exit) std::fputs(report().c_str(), stderr);
}

void raise_unchecked() {
  if (collect_until_exit || unchecked().empty()) return;
  add_all(false);
  fail(cudaSuccess);  // raised here, so that no later launch is blamed for it
  throw std::runtime_error(report());
}

void add_unchecked() {
  const std::lock_guard lock(emulator_one_launch);
  add_all(false);
}

}  // namespace emulator
