// The scheduler: opens blocks, runs their threads, lets those wait that must.
//
// A fiber runs the threads of a block one after another as plain calls. Only a thread that waits keeps the
// fiber; the next one goes on with another. So a kernel that never waits runs on one fiber, without switches.
#include <pthread.h>

#include <algorithm>
#include <cstdio>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "access.h"
#include "api.h"
#include "barriers.h"
#include "builtin.h"
#include "counts.h"
#include "launch_state.h"
#include "refusal.h"
#include "report.h"
#include "shuffle.h"
#include "streams.h"

// One for all extensions of a process, each of which has its own runtime: signal handlers belong to the
// process. A unique symbol is the same for all, however they were loaded.
extern "C" {
__attribute__((visibility("default"))) constinit std::mutex emulator_one_launch{};
}
asm(".type emulator_one_launch, %gnu_unique_object");

namespace emulator {

LaunchState* state = nullptr;
Thread* current = nullptr;
volatile bool in_kernel = false;

namespace {

constexpr int kPatience = 256;  // polls after which a thread gives others a turn

pthread_t launching_thread;
bool launching = false;

// Blocks are kept from launch to launch, for the sake of their memory.
std::vector<Block*>& spare_blocks() {
  static auto& blocks = *new std::vector<Block*>;
  return blocks;
}

void open_block() {
  auto& spare = spare_blocks();
  if (spare.empty()) spare.push_back(new Block);
  Block& block = *spare.back();
  state->resident.push_back(&block);
  spare.pop_back();

  const unsigned threads = state->threads_per_block, warps = (threads + 31) / 32;
  block.number = shuffled(state->opened++, state->blocks, 0);
  block.index = place_in(state->configuration.grid, block.number);
  block.threads.resize(threads);
  block.warps.resize(warps);
  for (unsigned w = 0; w < warps; w++) {
    const unsigned lanes = std::min(32u, threads - 32 * w);
    block.warps[w].alive = lanes == 32 ? 0xffffffffu : (1u << lanes) - 1;
    block.warps[w].open = 0;
  }
  block.started = 0;
  block.alive = threads;
  block.returned = block.returned_before = 0;
  block.is_out_of_step = false;
  block.at_barrier.clear();
  block.votes = {};
  clear_shared(block);
  state->starting = &block;
  shadow_block_begins(block);
}

Thread* start_next_thread() {
  Block* block = state->starting;
  if (!block) return nullptr;
  const auto rank = unsigned(shuffled(block->started++, state->threads_per_block, block->number + 1));
  if (block->started == state->threads_per_block) state->starting = nullptr;
  Thread& thread = block->threads[rank];
  thread.index = place_in(state->configuration.block, rank);
  thread.rank = rank;
  thread.block = block;
  thread.operation = Operation::none;
  thread.was_ended = false;
  thread.stray = Thread::kNoLane;
  return &thread;
}

void run_kernel() {
  std::string thrown;
  try {
    in_kernel = true;
    state->body(state->closure);
    in_kernel = false;
    return;
  } catch (const std::exception& error) {
    in_kernel = false;
    thrown = error.what();
  } catch (...) {
    in_kernel = false;
    thrown = "an exception that is no std::exception";
  }
  static char text[4096];  // the string's memory would be lost with this stack
  thrown.copy(text, sizeof(text) - 1);
  text[std::min(thrown.size(), sizeof(text) - 1)] = 0;
  thrown = std::string();
  abandon("threw an exception: %s", text);
}

// What every fiber runs.
void work() {
  for (;;) {
    while (Thread* thread = start_next_thread()) {
      current = thread;
      patience = kPatience;
      set_thread(thread->index, thread->block->index);
      run_kernel();
      leave_block(*current);
      if (current->block->alive == 0) close_block(current->block);
      current = nullptr;
    }
    Fiber::running()->give_back();
    Fiber::suspend();
  }
}

void resume(Thread* thread) {
  current = thread;
  patience = kPatience;
  set_thread(thread->index, thread->block->index);
  thread->fiber->resume();
}

void run_grid() {
  while (!failure() && !state->shared_refused && !state->is_stuck) {
    if (stop_wanted) {
      stop_here();
    } else if (!state->ready.empty()) {
      auto& ready = state->ready;
      std::swap(ready.front(), ready[pick(ready.size())]);
      Thread* thread = ready.front();
      ready.pop_front();
      resume(thread);
    } else if (state->starting) {
      Fiber::take().resume();
    } else if (!state->gathering.empty()) {
      release_gathering();
    } else if (state->opened < state->blocks && state->resident.size() < state->most_resident) {
      open_block();
    } else if (!state->turn.empty()) {
      state->ready.swap(state->turn);
    } else if (!state->resident.empty()) {
      current = nullptr;
      state->is_stuck = true;
      add_deadlock();
    } else {
      return;
    }
  }
}

// What became of a launch, for the host: an exception for a kernel that failed or was found wrong. A plain
// program keeps its findings, and goes on with an error of CUDA's.
void deliver(const std::string& failed, Position where) {
  if (collect_until_exit) {
    if (!failed.empty())
      add({Check::launch, "failed", nullptr, where.file_name(), where.line()},
          {false, failed, "", "launched in " + line_at(where)});
    break_device(state->error);
    return;
  }
  if (!has_findings() && failed.empty()) return;
  const bool is_wrong = has_errors() || !failed.empty();
  std::string text = failed;
  if (has_findings())
    text += (text.empty() ? "" : "\n") + std::string("the emulator found in ") + state->kernel +
            ", launched in " + line_at(where) + ":\n" + take_report();
  else if (!seed_note().empty())
    text += " (" + seed_note() + ")";
  if (is_wrong) throw std::runtime_error(text);
  std::fputs(text.c_str(), stderr);
}

// What a launch may touch of the host's memory, as far as its arguments tell: from a pointer on.
std::vector<Touched> uses_of(const std::vector<Argument>& arguments) {
  std::vector<Touched> uses;
  for (const Argument& argument : arguments)
    if (argument.pointer) uses.push_back({argument.pointer, std::size_t(-1), !argument.read_only});
  return uses;
}

// Leaves everything as it was before the launch, however that ended.
struct Cleanup {
  ~Cleanup() {
    Fiber::abandon_all();
    auto& spare = spare_blocks();
    spare.insert(spare.end(), state->resident.begin(), state->resident.end());
    unbind();
    state = nullptr;
    current = nullptr;
    in_kernel = false;
    launching = false;
  }
};

}  // namespace

int patience = kPatience;

uint3 place_in(dim3 size, std::uint64_t number) {
  return {unsigned(number % size.x), unsigned(number / size.x % size.y), unsigned(number / size.x / size.y)};
}

void refuse_in_kernels() {
  if (launching && pthread_equal(launching_thread, pthread_self()))
    abandon("launches another kernel: a launch inside a kernel is not supported");
}

void submit(LaunchInfo info) {
  const std::shared_ptr<void> closure(info.closure, info.destroy);
  const Call call("a launch", info.configuration.where);
  if (broken()) return;
  {
    const std::lock_guard lock(emulator_one_launch);
    read_settings();
    raise_unasked();
    if (is_refused(info.kernel, info.configuration, device(), info.configuration.where)) return;
  }
  struct Dropping {
    ~Dropping() { drop_tensors(); }
  } const after;
  Work work{"kernel " + std::string(info.kernel), info.configuration.where, nullptr, uses_of(info.arguments)};
  work.is_launch = true;
  const cudaStream_t stream = info.configuration.stream;
  work.run = [info = std::move(info), closure] { run(info); };
  enqueue(stream, std::move(work));
}

void run(const LaunchInfo& info) {
  const std::lock_guard lock(emulator_one_launch);
  read_settings();
  looks_at_accesses = any_check() || counting;
  last_counter = nullptr;
  const cudaDeviceProp properties = device();
  const Configuration& configuration = info.configuration;

  LaunchState launch;
  launch.kernel = info.kernel;
  launch.configuration = configuration;
  launch.body = info.body;
  launch.closure = info.closure;
  launch.closure_begin = launch.closure;
  launch.closure_size = info.closure_size;
  launch.threads_per_block = configuration.block.x * configuration.block.y * configuration.block.z;
  launch.blocks = std::uint64_t(configuration.grid.x) * configuration.grid.y * configuration.grid.z;
  launch.most_resident =
      unsigned(properties.multiProcessorCount) *
      std::max(1, std::min(properties.maxBlocksPerMultiProcessor,
                           properties.maxThreadsPerMultiProcessor / int(launch.threads_per_block)));
  launch.shared_allowed =
      allowed_dynamic_shared() ? properties.sharedMemPerBlockOptin : properties.sharedMemPerBlock;

  std::string failed;
  {
    state = &launch;
    launching = true;
    launching_thread = pthread_self();
    const Cleanup cleanup;
    const FaultGuard guard;
    Fiber::set_work(work);
    set_launch(configuration.grid, configuration.block);
    bind(info.arguments);
    shadow_launch_begins();
    if (counting) count_launch_begins();
    run_grid();
    shadow_launch_ends();
    if (failure()) failed = failure();
    deliver(failed, configuration.where);
  }
  if (launch.shared_refused)
    refuse_shared(info.kernel, launch.shared_refused, configuration.shared, launch.shared_allowed,
                  configuration.where);
}

void close_block(Block* block) {
  auto& resident = state->resident;
  resident.erase(std::find(resident.begin(), resident.end(), block));
  spare_blocks().push_back(block);
}

void make_ready(Thread* thread) { state->ready.push_back(thread); }

void come_to(Operation operation, std::uint32_t mask, Position where) {
  current->operation = operation;
  current->mask = mask;
  current->where = where;
}

void wait() {
  current->fiber = Fiber::running();
  Fiber::suspend();
}

void give_turn() {
  if (!current) return;
  const InRuntime inside;
  come_to(Operation::turn, 0, Position{});
  state->turn.push_back(current);
  wait();
  current->operation = Operation::none;
}

void fence() {
  if (current) shadow_fence(*current);
  ask_again();
}

const Thread* current_thread() { return current; }
const char* current_kernel() { return state ? state->kernel : nullptr; }
const std::vector<SharedVariable>& shared_variables() { return state->variables; }
const std::vector<Thread>& threads_of(const Block& block) { return block.threads; }
const Arena& arena_of(const Block& block) { return block.arena; }
uint3 index_of(const Block& block) { return block.index; }

}  // namespace emulator
