#include "launch_limits.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <optional>
#include <stdexcept>
#include <vector>

#include "../report/report.h"
#include "launch_state.h"

namespace emulator {
namespace {

struct Reason {
  const char* problem;
  std::string what;
};

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
std::optional<Reason> reason_against(const Configuration& c, const cudaDeviceProp& device) {
  const unsigned grid[] = {c.grid.x, c.grid.y, c.grid.z}, block[] = {c.block.x, c.block.y, c.block.z};
  if (std::count(grid, grid + 3, 0u))
    return Reason{"empty grid", "grid " + text_of(c.grid) + " is empty: was a size zero?"};
  if (std::count(block, block + 3, 0u))
    return Reason{"empty block", "block " + text_of(c.block) + " is empty: was a size zero?"};
  for (int axis = 0; axis < 3; axis++)
    if (grid[axis] > unsigned(device.maxGridSize[axis]))
      return Reason{"large grid", of_axis("grid", axis, grid[axis], device.maxGridSize[axis])};
  const double threads = double(block[0]) * block[1] * block[2];
  if (threads > device.maxThreadsPerBlock)
    return Reason{"many threads", "it asks for " + number(threads) + " threads per block, " +
                                      text_of(c.block) + "; the device allows " +
                                      std::to_string(device.maxThreadsPerBlock)};
  for (int axis = 0; axis < 3; axis++)
    if (block[axis] > unsigned(device.maxThreadsDim[axis]))
      return Reason{"large block", of_axis("block", axis, block[axis], device.maxThreadsDim[axis])};
  const std::size_t shared = std::max(device.sharedMemPerBlock, allowed_dynamic_shared());
  if (c.shared > shared)
    return Reason{"dynamic shared memory", "it asks for " + std::to_string(c.shared) +
                                               " bytes of dynamic shared memory; a block may have " +
                                               std::to_string(shared) +
                                               ", and after cudaFuncSetAttribute(kernel, " +
                                               "cudaFuncAttributeMaxDynamicSharedMemorySize, ...) up to " +
                                               std::to_string(device.sharedMemPerBlockOptin)};
  return std::nullopt;
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

Refused refused(const char* kernel, const Reason& reason, Position where) {
  return {{Check::launch, reason.problem, nullptr, where.file_name(), where.line(), where.column()},
          "the launch of " + std::string(kernel) + " is refused: " + reason.what,
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

bool is_refused(const char* kernel, const Configuration& configuration, const cudaDeviceProp& device,
                Position where) {
  const auto reason = reason_against(configuration, device);
  if (!reason) return false;
  fail(cudaErrorInvalidValue);
  if (is_on(Check::launch)) wait_until_checked(refused(kernel, *reason, where));
  return true;
}

void refuse_shared(const char* kernel, std::size_t static_size, std::size_t dynamic_size, std::size_t allowed,
                   Position where) {
  fail(cudaErrorInvalidValue);
  if (!is_on(Check::launch)) return;
  const Refused one =
      refused(kernel,
              {"shared memory", "it needs " + std::to_string(static_size) + " bytes of static and " +
                                    std::to_string(dynamic_size) + " of dynamic shared memory, " +
                                    std::to_string(static_size + dynamic_size) +
                                    " together; a block may have " + std::to_string(allowed)},
              where);
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
