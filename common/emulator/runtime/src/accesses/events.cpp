// The events that concern several checks.
#include "../state/events.h"

#include "../counts/counts.h"
#include "../ordering/happens_before.h"
#include "../ordering/known_blocks.h"
#include "async_copies.h"

namespace emulator {

void on_thread_ended(Thread& thread) {
  if (counting) count_thread_ends(thread);
  if (running.launch->copies) drop_copies(thread);
}

void on_block_barrier(Block& block) {
  synchronise(block);
  if (counting) count_block_barrier(block);
}

void on_warp_synchronised(Block& block, unsigned warp, std::uint32_t mask, std::uint32_t arrived) {
  synchronise_lanes(block, warp, mask);
  if (counting) count_warp_synchronised(block, warp, arrived);
}

void on_blocks_synchronised(const std::vector<Block*>& blocks, Scope scope) {
  synchronise(blocks, scope);
  if (!counting) return;
  for (Block* block : blocks) count_block_barrier(*block);
}

}  // namespace emulator
