// The shared memory of a block, and its variables by name.
#pragma once

#include <string>

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

// The part of shared memory that contains an address: its first byte; null for global memory.
inline std::byte* arena_part(const Block& block, const std::byte* address) {
  const std::ptrdiff_t offset = address - block.arena.bytes;
  if (offset < 0 || offset >= std::ptrdiff_t(kArenaSpan)) return nullptr;
  return address < block.arena.dynamic - kArenaGap ? block.arena.bytes : block.arena.dynamic;
}
// The variable that holds an address of such a part; null between variables.
const SharedVariable* variable_at(const Block& block, const std::byte* arena, const std::byte* address);

std::string name_of(const SharedVariable& variable);
std::string element_of(const SharedVariable& variable, std::ptrdiff_t offset);  // "tile[3][16]"
std::string describe(const SharedVariable& variable);

}  // namespace emulator
EMULATOR_END
