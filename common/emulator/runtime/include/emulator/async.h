// Asynchronous copies of a thread, and barrier objects: what cuda::barrier, cuda::pipeline, and the headers
// cuda_pipeline.h and cooperative_groups/memcpy_async.h are made of.
//
// A copy is made when it begins, but counts as under way until a thread has waited for it.
#pragma once

#include <cstddef>
#include <cstdint>

#include "emulator/state.h"

EMULATOR_BEGIN
namespace emulator {

struct AsyncBarrier;  // the memory of a barrier object

// The last `zeros` bytes are not copied but zeroed. With a barrier, the copy belongs to its current phase.
void begin_copy(void* to, const void* from, std::size_t bytes, std::size_t zeros = 0,
                AsyncBarrier* barrier = nullptr);
void commit_copies();                       // those since the last commit become a batch
void wait_for_copies(std::size_t batches);  // all but the latest batches
void wait_for_oldest_copies();              // the oldest batch that has not been waited for

struct alignas(8) AsyncBarrier {
  std::uint32_t words[2];
};
void init_barrier(AsyncBarrier* barrier, std::uint32_t expected, Position where);
// Returns the phase that it arrives in. With `drops`, one arrival less is expected from the next phase on.
std::uint32_t arrive_at_barrier(AsyncBarrier* barrier, std::uint32_t arrivals, bool drops, Position where);
// A phase completes only when as many bytes have arrived as were expected: negative ones have arrived.
void expect_bytes(AsyncBarrier* barrier, std::int64_t bytes, Position where);
bool is_phase_complete(AsyncBarrier* barrier, std::uint32_t phase, Position where);
void wait_for_phase_of(AsyncBarrier* barrier, std::uint32_t phase, Position where);
// The current phase, or the one before it: it is complete if the current one has the other parity.
std::uint32_t phase_with_parity(AsyncBarrier* barrier, bool parity, Position where);
void drop_barrier(AsyncBarrier* barrier);  // its life ends

}  // namespace emulator
EMULATOR_END
