// Shared memory: one arena a block, filled with the pattern before a block first uses a variable.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "launch_state.h"

namespace emulator {
namespace {

constexpr std::size_t kArena = 256 << 10;  // more than any device has
constexpr std::size_t kDynamic = 256;      // alignment of the dynamic part, which comes after the static one

void fill(std::byte* memory, std::size_t size) {
  for (std::size_t at = 0; at < size; at += sizeof(kUnwritten))
    std::memcpy(memory + at, &kUnwritten, std::min(sizeof(kUnwritten), size - at));
}

std::byte* aligned(std::byte* memory) {
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory) + kDynamic - 1) &
                                      ~(kDynamic - 1));
}

std::size_t find_variable(long key, const char* function, std::size_t size, std::size_t alignment) {
  auto& variables = state->variables;
  for (std::size_t i = 0; i < variables.size(); i++)
    if (variables[i].key == key && variables[i].function == function) return i;
  const std::size_t offset = (state->shared_used + alignment - 1) / alignment * alignment,
                    used = offset + size;
  const std::size_t static_limit = device().sharedMemPerBlock;
  if (used > static_limit)
    abandon("needs %zu bytes of static shared memory, and a block may have %zu: nvcc refuses this kernel",
            used, static_limit);
  if (used + state->configuration.shared > state->shared_allowed) {
    state->refused = cudaErrorInvalidValue;
    Fiber::leave();
  }
  state->shared_used = used;
  variables.push_back({key, function, offset, size});
  return variables.size() - 1;
}

}  // namespace

void clear_shared(Block& block) {
  if (block.memory.empty()) {
    block.memory.resize(2 * (kArena + kDynamic));
    block.arena.bytes = aligned(block.memory.data());
    block.arena.dynamic = aligned(block.arena.bytes + kArena);
  }
  block.arena.dynamic_size = state->configuration.shared;
  fill(block.arena.dynamic, block.arena.dynamic_size);
  std::fill(block.filled.begin(), block.filled.end(), 0);
}

void* shared_memory(long key, const char* function, std::size_t size, std::size_t alignment) {
  if (!current) throw std::runtime_error("a __shared__ variable was used outside of a kernel");
  const InRuntime inside;
  Block& block = *current->block;
  const std::size_t which = find_variable(key, function, size, alignment);
  const SharedVariable& variable = state->variables[which];
  if (block.filled.size() <= which) block.filled.resize(which + 1);
  if (!block.filled[which]) {
    block.filled[which] = true;
    fill(block.arena.bytes + variable.offset, variable.size);
  }
  return block.arena.bytes + variable.offset;
}

void* dynamic_shared_memory() {
  if (!current) throw std::runtime_error("a __shared__ variable was used outside of a kernel");
  return current->block->arena.dynamic;
}

}  // namespace emulator
