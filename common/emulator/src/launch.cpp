// The scheduler: opens blocks, runs their threads, lets those wait that must.
//
// A fiber runs the threads of a block one after another as plain calls. Only a thread that waits keeps the
// fiber; the next one goes on with another. So a kernel that never waits runs on one fiber, without switches.
#include <pthread.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <string>

#include "builtin.h"
#include "launch_state.h"

// One for all extensions of a process, each of which has its own runtime: signal handlers belong to the
// process. A unique symbol is the same for all, however they were loaded.
extern "C" {
__attribute__((visibility("default"))) constinit std::mutex emulator_one_launch{};
}
asm(".type emulator_one_launch, %gnu_unique_object");

namespace emulator {

LaunchState* state = nullptr;
Thread* current = nullptr;
Observer* observer = nullptr;
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

// The order of blocks and of the threads of a block is decided in these two.
std::uint64_t nth_block(std::uint64_t n) { return n; }
unsigned nth_thread(unsigned n) { return n; }

uint3 place_in(dim3 size, std::uint64_t number) {
  return {unsigned(number % size.x), unsigned(number / size.x % size.y), unsigned(number / size.x / size.y)};
}

void open_block() {
  auto& spare = spare_blocks();
  if (spare.empty()) spare.push_back(new Block);
  Block& block = *spare.back();
  state->resident.push_back(&block);
  spare.pop_back();

  const unsigned threads = state->threads_per_block, warps = (threads + 31) / 32;
  block.number = nth_block(state->opened++);
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
  block.at_barrier.clear();
  block.votes = {};
  clear_shared(block);
  state->starting = &block;
  if (observer) observer->block_begins(block);
}

void close_block(Block* block) {
  auto& resident = state->resident;
  resident.erase(std::find(resident.begin(), resident.end(), block));
  spare_blocks().push_back(block);
}

Thread* start_next_thread() {
  Block* block = state->starting;
  if (!block) return nullptr;
  const unsigned rank = nth_thread(block->started++);
  if (block->started == state->threads_per_block) state->starting = nullptr;
  Thread& thread = block->threads[rank];
  thread.index = place_in(state->configuration.block, rank);
  thread.rank = rank;
  thread.block = block;
  thread.operation = Operation::none;
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
  while (!failure() && !state->refused) {
    if (stop_wanted) {
      stop_here();
    } else if (!state->ready.empty()) {
      Thread* thread = state->ready.front();
      state->ready.pop_front();
      resume(thread);
    } else if (state->starting) {
      Fiber::take().resume();
    } else if (state->opened < state->blocks && state->resident.size() < state->most_resident) {
      open_block();
    } else if (!state->turn.empty()) {
      state->ready.swap(state->turn);
    } else if (!state->resident.empty()) {
      current = nullptr;
      set_failure("cannot go on: %s", waiting_threads().c_str());
    } else {
      return;
    }
  }
}

// What a device would say to these sizes: one error for all of them, as CUDA 13.0 says on an H200. Older
// versions of CUDA have cudaErrorInvalidConfiguration for grids and blocks.
cudaError_t refusal(const Configuration& c, const cudaDeviceProp& device) {
  const unsigned grid[] = {c.grid.x, c.grid.y, c.grid.z}, block[] = {c.block.x, c.block.y, c.block.z};
  for (int axis = 0; axis < 3; axis++) {
    if (grid[axis] == 0 || grid[axis] > unsigned(device.maxGridSize[axis])) return cudaErrorInvalidValue;
    if (block[axis] == 0 || block[axis] > unsigned(device.maxThreadsDim[axis])) return cudaErrorInvalidValue;
  }
  if (std::uint64_t(c.block.x) * c.block.y * c.block.z > std::uint64_t(device.maxThreadsPerBlock))
    return cudaErrorInvalidValue;
  if (c.shared > std::max(device.sharedMemPerBlock, allowed_dynamic_shared())) return cudaErrorInvalidValue;
  return cudaSuccess;
}

// Leaves everything as it was before the launch, however that ended.
struct Cleanup {
  ~Cleanup() {
    Fiber::abandon_all();
    auto& spare = spare_blocks();
    spare.insert(spare.end(), state->resident.begin(), state->resident.end());
    state = nullptr;
    current = nullptr;
    in_kernel = false;
    launching = false;
  }
};

}  // namespace

int patience = kPatience;

void run(const char* kernel, const Configuration& configuration, Position where, void (*body)(void*),
         void* closure) {
  if (launching && pthread_equal(launching_thread, pthread_self()))
    abandon("launches another kernel: a launch inside a kernel is not supported");
  const std::lock_guard lock(emulator_one_launch);

  const cudaDeviceProp properties = device();
  if (const cudaError_t error = refusal(configuration, properties)) {
    fail(error);
    return;
  }

  LaunchState launch;
  launch.kernel = kernel;
  launch.configuration = configuration;
  launch.body = body;
  launch.closure = closure;
  launch.threads_per_block = configuration.block.x * configuration.block.y * configuration.block.z;
  launch.blocks = std::uint64_t(configuration.grid.x) * configuration.grid.y * configuration.grid.z;
  launch.most_resident =
      unsigned(properties.multiProcessorCount) *
      std::max(1, std::min(properties.maxBlocksPerMultiProcessor,
                           properties.maxThreadsPerMultiProcessor / int(launch.threads_per_block)));
  launch.shared_allowed =
      allowed_dynamic_shared() ? properties.sharedMemPerBlockOptin : properties.sharedMemPerBlock;

  std::string failed;
  cudaError_t refused = cudaSuccess;
  {
    state = &launch;
    launching = true;
    launching_thread = pthread_self();
    const Cleanup cleanup;
    const FaultGuard guard;
    Fiber::set_work(work);
    set_launch(configuration.grid, configuration.block);
    if (observer) observer->launch_begins(kernel, configuration.grid, configuration.block, where);
    run_grid();
    if (observer) observer->launch_ends();
    if (failure()) failed = failure();
    refused = launch.refused;
  }
  if (refused != cudaSuccess) fail(refused);
  if (!failed.empty()) throw std::runtime_error(failed);
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
  if (observer && current) observer->fence(*current);
  ask_again();
}

const Thread* current_thread() { return current; }
const char* current_kernel() { return state ? state->kernel : nullptr; }
const std::vector<SharedVariable>& shared_variables() { return state->variables; }
const std::vector<Thread>& threads_of(const Block& block) { return block.threads; }
const Arena& arena_of(const Block& block) { return block.arena; }
uint3 index_of(const Block& block) { return block.index; }

}  // namespace emulator
