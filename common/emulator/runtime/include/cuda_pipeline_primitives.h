// Stands for CUDA's header of this name.
#pragma once

#include "cuda_runtime.h"
#include "emulator/async.h"

EMULATOR_BEGIN
inline void __pipeline_memcpy_async(void* to_shared, const void* from_global, std::size_t bytes,
                                    std::size_t zeros = 0) {
  if (bytes != 4 && bytes != 8 && bytes != 16)
    emulator::abandon("calls __pipeline_memcpy_async with %zu bytes: it must be 4, 8 or 16", bytes);
  if ((reinterpret_cast<std::uintptr_t>(to_shared) | reinterpret_cast<std::uintptr_t>(from_global)) % bytes)
    emulator::abandon("calls __pipeline_memcpy_async with an address that is not a multiple of %zu bytes",
                      bytes);
  emulator::begin_copy(to_shared, from_global, bytes, zeros);
}
inline void __pipeline_commit() { emulator::commit_copies(); }
inline void __pipeline_wait_prior(std::size_t batches) { emulator::wait_for_copies(batches); }
EMULATOR_END
