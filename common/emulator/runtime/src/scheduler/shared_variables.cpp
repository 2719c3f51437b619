// One arena per block. It is filled with the uninitialised pattern before a block first uses a variable.
#include "shared_variables.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "../report/launch_limits.h"
#include "cores.h"

namespace emulator {
namespace {

constexpr std::size_t kRedzone = 256;  // bytes between variables, so that an overrun of one is found

void fill(std::byte* memory, std::size_t size) {
  for (std::size_t at = 0; at < size; at += sizeof(kUninitialised))
    std::memcpy(memory + at, &kUninitialised, std::min(sizeof(kUninitialised), size - at));
}

std::byte* aligned(std::byte* memory) {
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory) + kArenaGap - 1) &
                                      ~(kArenaGap - 1));
}

std::size_t aligned(std::size_t offset, std::size_t alignment) {
  return (offset + alignment - 1) / alignment * alignment;
}

// Ends the launch if a block cannot have this much static shared memory.
void check_static_bytes(std::size_t bytes) {
  const std::size_t most = device().sharedMemPerBlock;
  if (bytes > most)
    abandon("needs %zu bytes of static shared memory, but a block may have %zu: nvcc rejects this kernel",
            bytes, most);
  LaunchState& launch = *running.launch;
  launch.refusal = refusal_of_shared(launch.configuration, bytes, launch.shared.allowed, device());
  if (!launch.refusal) return;
  wait_for_turn();
  Fiber::leave();
}

std::size_t find_variable(long key, const char* function, const char* name, std::size_t size,
                          std::size_t alignment, const ArrayShape& shape) {
  SharedMemory& shared = running.launch->shared;
  auto& variables = shared.variables;
  for (std::size_t i = 0; i < variables.size(); i++)
    if (variables[i].key == key && variables[i].function == function && !variables[i].is_dynamic) return i;
  const std::size_t bytes = aligned(shared.static_bytes, alignment) + size;
  check_static_bytes(bytes);
  shared.static_bytes = bytes;
  std::size_t offset = kRedzone;
  for (const SharedVariable& variable : variables)
    if (!variable.is_dynamic) offset = std::max(offset, variable.offset + variable.size + kRedzone);
  variables.push_back({key, function, name, aligned(offset, alignment), size, false, shape});
  return variables.size() - 1;
}

// Before a block first uses a variable, or another block of its cluster may.
void fill_variable(Block& block, std::size_t which) {
  if (block.filled.size() <= which) block.filled.resize(which + 1);
  if (std::exchange(block.filled[which], true)) return;
  const SharedVariable& variable = running.launch->shared.variables[which];
  fill(block.arena.bytes + variable.offset, variable.size);
}

}  // namespace

void clear_shared(Block& block) {
  if (block.memory.empty()) {
    block.memory.resize(2 * (kArena + kArenaGap));
    block.arena.bytes = aligned(block.memory.data());
    block.arena.dynamic = aligned(block.arena.bytes + kArena);
  }
  block.arena.dynamic_size = running.launch->configuration.shared;
  fill(block.arena.dynamic, block.arena.dynamic_size);
  std::fill(block.filled.begin(), block.filled.end(), 0);
}

void* shared_memory(long key, Position where, const char* name, std::size_t size, std::size_t alignment,
                    const ArrayShape& shape) {
  if (!running.thread) throw std::runtime_error("a __shared__ variable was used outside of a kernel");
  const InRuntime inside;
  Block& block = *running.thread->block;
  const std::size_t which = find_variable(key, where.function_name(), name, size, alignment, shape);
  const SharedVariable& variable = running.launch->shared.variables[which];
  if (block.filled.size() <= which) block.filled.resize(which + 1);
  if (!block.filled[which])
    for (Block* each : block.cluster->blocks) fill_variable(*each, which);
  return block.arena.bytes + variable.offset;
}

void* dynamic_shared_memory(const char* name, const ArrayShape& shape) {
  if (!running.thread) throw std::runtime_error("a __shared__ variable was used outside of a kernel");
  const InRuntime inside;
  auto& variables = running.launch->shared.variables;
  if (std::none_of(variables.begin(), variables.end(),
                   [](const SharedVariable& one) { return one.is_dynamic; }))
    variables.push_back({0, "", name, 0, running.launch->configuration.shared, true, shape});
  return running.thread->block->arena.dynamic;
}

}  // namespace emulator
