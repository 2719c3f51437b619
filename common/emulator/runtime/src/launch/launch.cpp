// A launch from `<<<` to its end: it is refused or enqueued, runs, and is reported to the host.
#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "../accesses/early_accesses.h"
#include "../accesses/host_accesses.h"
#include "../api/streams/streams.h"
#include "../counts/counts.h"
#include "../memory/bindings.h"
#include "../memory/devices.h"
#include "../races/shadow_events.h"
#include "../report/call.h"
#include "../report/launch_limits.h"
#include "../report/report.h"
#include "../scheduler/failure.h"
#include "../scheduler/launch_times.h"
#include "../scheduler/scheduler.h"
#include "../scheduler/signals.h"
#include "../state/builtin_variables.h"
#include "../state/events.h"
#include "../state/launch_state.h"
#include "../state/thread_order.h"
#include "../synchronisation/undefined_values.h"
#include "child_launches.h"
#include "emulator/kernel_api.h"

namespace emulator {

namespace {

unsigned long failed_launches = 0;  // that raised an exception

// Reports a launch to the host: by an exception if its kernel failed or has errors. A plain program keeps its
// findings, and continues with a CUDA error.
void deliver(const std::string& failed, Position where) {
  if (collect_until_exit) {
    if (!failed.empty())
      add({Check::launch, "failed", nullptr, where.file_name(), where.line()},
          {false, failed, "", "launched in " + line_at(where)});
    set_sticky_error(running.launch->error);
    return;
  }
  if (!has_findings() && failed.empty()) return;
  const bool is_wrong = has_errors() || !failed.empty();
  std::string text = failed;
  if (has_findings())
    text += (text.empty() ? "" : "\n") + std::string("the emulator found in ") + running.launch->kernel +
            ", launched in " + line_at(where) + ":\n" + take_report();
  else if (!seed_note().empty())
    text += " (" + seed_note() + ")";
  if (is_wrong) {
    failed_launches++;
    throw std::runtime_error(text);
  }
  std::fputs(text.c_str(), stderr);
}

// The host memory that a launch may access, judging by its arguments: from each pointer on.
std::vector<MemoryUse> uses_of(const std::vector<Argument>& arguments) {
  std::vector<MemoryUse> uses;
  for (const Argument& argument : arguments)
    if (argument.pointer) uses.push_back({argument.pointer, std::size_t(-1), !argument.read_only});
  return uses;
}

LaunchState state_of(const LaunchInfo& info) {
  const cudaDeviceProp properties = device();
  const dim3 grid = info.configuration.grid, block = info.configuration.block;
  LaunchState launch{info.kernel, info.configuration, info.body, info.closure, info.closure_size, {}, {}, {}};
  Schedule& schedule = launch.schedule;
  schedule.threads_per_block = block.x * block.y * block.z;
  schedule.blocks = std::uint64_t(grid.x) * grid.y * grid.z;
  const dim3 cluster = info.configuration.cluster;
  schedule.cluster = cluster.x ? cluster : dim3(1, 1, 1);
  schedule.most_resident =
      unsigned(properties.multiProcessorCount *
               std::max(1, resident_blocks(int(schedule.threads_per_block), info.configuration.shared)));
  launch.device = working_device();
  launch.shared.allowed =
      info.configuration.allowed_shared ? properties.sharedMemPerBlockOptin : properties.sharedMemPerBlock;
  return launch;
}

// Restores the state before the launch, however the launch ended.
struct Cleanup {
  ~Cleanup() {
    abandon_schedule();
    forget_store();
    unbind();
    running.launch = nullptr;
    is_launch_running = false;
    running.thread = nullptr;
    running.in_kernel = false;
  }
};

// Runs a launch, and then the launches by its threads.
void run_tree(LaunchState& launch, const std::vector<Argument>& arguments) {
  running.launch = &launch;
  set_launch(launch.configuration.grid, launch.configuration.block);
  bind(arguments);
  if (counting) count_launch_begins();
  run_grid();
  while (!has_failed() && launch.error == cudaSuccess) {
    const auto child = next_child(launch);
    if (!child) return;
    forget_bindings();
    LaunchState state = state_of(child->info);
    begin_child(state, launch, *child);
    run_tree(state, child->info.arguments);
    running.launch = &launch;
    end_child(*child, state);
    if (state.refusal) refuse_late(state.kernel, *state.refusal, state.configuration.where);
    launch.error = state.error;
  }
}

void run_checked(LaunchState& launch, const std::vector<Argument>& arguments) {
  running.observes_accesses = any_check() || counting || has_concurrent_host || has_early_accesses();
  running.last_pc = nullptr;
  running.os_thread = pthread_self();
  running.launch = &launch;
  is_launch_running = true;
  const Cleanup cleanup;
  const LaunchTimer timer;
  const SignalGuard guard;
  begin_launch_tree(launch);
  shadow_launch_begins(counting || has_concurrent_host);
  run_tree(launch, arguments);
  shadow_launch_ends();
  deliver(failure() ? failure() : "", launch.configuration.where);
}

}  // namespace

void refuse_in_kernels() {
  if (is_called_by_kernel())
    abandon("launches another kernel by a function: inside a kernel, the emulator supports only <<< >>>");
}

LaunchCall::LaunchCall() : is_in_kernel_(runs_in_kernel()) {
  if (is_in_kernel_) running.in_kernel = false;
}
LaunchCall::~LaunchCall() {
  if (is_in_kernel_) running.in_kernel = true;
}

cudaError_t prepare_work(LaunchInfo info, Work& work) {
  const std::shared_ptr<void> closure(info.closure, info.destroy);
  if (sticky_error()) return note_skipped_work(), sticky_error();
  {
    const std::lock_guard lock(emulator_one_launch);
    read_settings();
    raise_unchecked();
    const cudaError_t error =
        refuse_early(info.kernel, info.configuration, device(), info.configuration.where);
    if (error) return error;
  }
  work = {"kernel " + std::string(info.kernel), info.configuration.where, nullptr, uses_of(info.arguments)};
  work.type = cudaGraphNodeTypeKernel;
  work.uses_are_exact = false;
  work.run = [info = std::move(info), closure] { run(info); };
  return cudaSuccess;
}

cudaError_t submit(LaunchInfo info) {
  if (is_called_by_kernel()) return launch_child(std::move(info));
  const Call call("a launch", info.configuration.where);
  const cudaStream_t stream = info.configuration.stream;
  Work work;
  if (const cudaError_t error = prepare_work(std::move(info), work)) return error;
  struct Dropping {
    ~Dropping() { drop_tensors(); }
  } const after;
  return enqueue(stream, std::move(work));
}

void run(const LaunchInfo& info) {
  const std::lock_guard lock(emulator_one_launch);
  read_settings();
  LaunchState launch = state_of(info);
  run_checked(launch, info.arguments);
  if (launch.refusal) refuse_late(info.kernel, *launch.refusal, info.configuration.where);
}

}  // namespace emulator

unsigned long emulator_failed_launches() { return emulator::failed_launches; }
