// Addresses of shared memory as PTX has them: 32 bits, counted from the beginning of the block's window.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/groups.h"

EMULATOR_BEGIN
namespace emulator {

std::uint32_t shared_address(const void* pointer);
void* shared_pointer(std::uint32_t address, EMULATOR_HERE);
// The same place in the shared memory of another block of the cluster (mapa).
std::uint32_t address_in_cluster(std::uint32_t address, unsigned rank);

}  // namespace emulator

inline std::size_t __cvta_generic_to_shared(const void* pointer) { return emulator::shared_address(pointer); }
inline void* __cvta_shared_to_generic(std::size_t address) {
  return emulator::shared_pointer(static_cast<std::uint32_t>(address));
}
inline std::size_t __cvta_generic_to_global(const void* pointer) {
  return reinterpret_cast<std::size_t>(pointer);
}
inline void* __cvta_global_to_generic(std::size_t address) { return reinterpret_cast<void*>(address); }
inline unsigned __isShared(const void* pointer) { return emulator::is_shared(pointer); }
inline unsigned __isGlobal(const void* pointer) { return !emulator::is_shared(pointer); }
EMULATOR_END
