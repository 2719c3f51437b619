// Shared memory: one arena a block, filled with the pattern before a block first uses a variable.
#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "launch_state.h"

namespace emulator {
namespace {

constexpr std::size_t kZone =
    256;  // between variables, so that an overrun of one is none of the next's memory

void fill(std::byte* memory, std::size_t size) {
  for (std::size_t at = 0; at < size; at += sizeof(kUnwritten))
    std::memcpy(memory + at, &kUnwritten, std::min(sizeof(kUnwritten), size - at));
}

std::byte* aligned(std::byte* memory) {
  return reinterpret_cast<std::byte*>((reinterpret_cast<std::uintptr_t>(memory) + kArenaGap - 1) &
                                      ~(kArenaGap - 1));
}

std::size_t find_variable(long key, const char* function, const char* name, std::size_t size,
                          std::size_t alignment, const ArrayShape& shape) {
  auto& variables = state->variables;
  for (std::size_t i = 0; i < variables.size(); i++)
    if (variables[i].key == key && variables[i].function == function && !variables[i].is_dynamic) return i;
  const std::size_t used = (state->shared_used + alignment - 1) / alignment * alignment + size;
  const std::size_t static_limit = device().sharedMemPerBlock;
  if (used > static_limit)
    abandon("needs %zu bytes of static shared memory, and a block may have %zu: nvcc refuses this kernel",
            used, static_limit);
  if (used + state->configuration.shared > state->shared_allowed) {
    state->shared_refused = used;
    Fiber::leave();
  }
  state->shared_used = used;
  std::size_t offset = kZone;
  for (const SharedVariable& variable : variables)
    if (!variable.is_dynamic) offset = std::max(offset, variable.offset + variable.size + kZone);
  offset = (offset + alignment - 1) / alignment * alignment;
  variables.push_back({key, function, name, offset, size, false, shape});
  return variables.size() - 1;
}

}  // namespace

void clear_shared(Block& block) {
  if (block.memory.empty()) {
    block.memory.resize(2 * (kArena + kArenaGap));
    block.arena.bytes = aligned(block.memory.data());
    block.arena.dynamic = aligned(block.arena.bytes + kArena);
  }
  block.arena.dynamic_size = state->configuration.shared;
  fill(block.arena.dynamic, block.arena.dynamic_size);
  std::fill(block.filled.begin(), block.filled.end(), 0);
}

void* shared_memory(long key, Position where, const char* name, std::size_t size, std::size_t alignment,
                    const ArrayShape& shape) {
  if (!current) throw std::runtime_error("a __shared__ variable was used outside of a kernel");
  const InRuntime inside;
  Block& block = *current->block;
  const std::size_t which = find_variable(key, where.function_name(), name, size, alignment, shape);
  const SharedVariable& variable = state->variables[which];
  if (block.filled.size() <= which) block.filled.resize(which + 1);
  if (!block.filled[which]) {
    block.filled[which] = true;
    fill(block.arena.bytes + variable.offset, variable.size);
  }
  return block.arena.bytes + variable.offset;
}

void* dynamic_shared_memory(const char* name, const ArrayShape& shape) {
  if (!current) throw std::runtime_error("a __shared__ variable was used outside of a kernel");
  const InRuntime inside;
  auto& variables = state->variables;
  if (std::none_of(variables.begin(), variables.end(),
                   [](const SharedVariable& one) { return one.is_dynamic; }))
    variables.push_back({0, "", name, 0, state->configuration.shared, true, shape});
  return current->block->arena.dynamic;
}

std::string name_of(const SharedVariable& variable) { return *variable.name ? variable.name : "a variable"; }

std::string element_of(const SharedVariable& variable, std::ptrdiff_t offset) {
  const ArrayShape& shape = variable.shape;
  auto element = std::ptrdiff_t(shape.element);
  std::string index;
  offset = offset / element - (offset % element < 0);
  for (unsigned i = shape.dimensions; i-- > 0;) {
    const auto size = std::ptrdiff_t(shape.sizes[i]);
    index = "[" + std::to_string(i == 0 ? offset : (offset % size + size) % size) + "]" + index;
    if (i > 0) offset = offset / size - (offset % size < 0);
  }
  return name_of(variable) + index;
}

std::string describe(const SharedVariable& variable) {
  if (variable.is_dynamic)
    return "the launch asks for " + std::to_string(variable.size) + " bytes of dynamic shared memory";
  std::string text = name_of(variable) + " is __shared__";
  for (unsigned i = 0; i < variable.shape.dimensions; i++)
    text += (i ? "[" : " and has [") + std::to_string(variable.shape.sizes[i]) + "]";
  if (variable.shape.dimensions) text += " elements";
  return text + " of " + std::to_string(variable.shape.element) + " bytes";
}

}  // namespace emulator
