// Most accesses of a kernel are reads by an instruction that has read the same memory before, from words
// without a recorded write. Such a read cannot fail a check: the shadow memory records it, and that is all.
#pragma once

#include "../memory/allocation.h"
#include "../races/access_sites.h"
#include "../races/races.h"
#include "../races/shadow.h"
#include "../state/launch_state.h"
#include "../synchronisation/undefined_values.h"

EMULATOR_BEGIN
namespace emulator {

// The shadow of the memory that an instruction has accessed before, if the calling thread may access it
// again.
inline Shadow* known_shadow(const LastAccess& last) {
  if (last.allocation) return last.allocation->shadow.get();
  const Block* own = running.thread->block;
  if (last.block != own) return nullptr;
  return last.arena == own->arena.bytes ? &own->shadow->fixed : &own->shadow->dynamic;
}

// Whether a plain read by a thread of the running kernel is one of these. If so, it is recorded.
template <std::size_t size>
[[gnu::always_inline]] inline bool is_repeated_read(const void* at, const void* pc) {
  const auto* address = static_cast<const std::byte*>(at);
  const LastAccess& last = last_access_of(pc);
  const RecentSite& site = recent_sites[reinterpret_cast<std::uintptr_t>(pc) % 1024];
  if (last.pc != pc || address < last.begin || address + size > last.end ||
      reinterpret_cast<std::uintptr_t>(at) % size || site.pc != pc)
    return false;
  if (has_suspects || has_store_to_check || running.launch->copies || thread_clock.thread != running.thread ||
      !thread_clock.epoch)
    return false;
  Shadow* shadow = known_shadow(last);
  if (!shadow || !shadow->add_harmless_read<size>(address, site.site)) return false;
  running.last_pc = pc;
  return true;
}

}  // namespace emulator
EMULATOR_END
