// Passes an access to the checks.
#include "accesses.h"

#include <cstdio>
#include <string>

#include "../counts/counts.h"
#include "../memory/bindings.h"
#include "../memory/shared_memory.h"
#include "../races/peer_accesses.h"
#include "../races/shadow_events.h"
#include "../report/report.h"
#include "../scheduler/scheduler.h"
#include "../state/launch_state.h"
#include "../synchronisation/undefined_values.h"
#include "async_copies.h"

namespace emulator {
namespace {

[[noreturn]] void refuse_shared(const Access& access, const char* problem, const SharedVariable& variable,
                                std::ptrdiff_t offset) {
  const Cause cause{Check::memory, problem, access.pc, reinterpret_cast<const void*>(variable.key)};
  if (is_new(cause))
    add(cause,
        {false, std::string(access.is_write ? "writes " : "reads ") + problem + " " + name_of(variable), "",
         element_of(variable, offset) + "; " + describe(variable)});
  end_thread();
}

// The variable of the arena that contains an address, or else the nearest variable before it.
const SharedVariable* check_shared_bounds(const Access& access) {
  const std::ptrdiff_t offset = access.address - access.arena;
  const SharedVariable* nearest = nullptr;
  for (const SharedVariable& variable : running.launch->shared.variables) {
    if (variable.is_dynamic != (access.arena == access.owner->arena.dynamic)) continue;
    const std::ptrdiff_t inside = offset - std::ptrdiff_t(variable.offset);
    if (inside >= 0 && inside + access.size <= variable.size) return &variable;
    if (!nearest || inside >= 0) nearest = &variable;
  }
  if (!nearest) return nullptr;
  const std::ptrdiff_t inside = offset - std::ptrdiff_t(nearest->offset);
  refuse_shared(access, inside < 0 ? "before the beginning of" : "past the end of", *nearest, inside);
}

// Whether it is in the shared memory of another block of the cluster.
void find_peer(Access& access) {
  for (Block* peer : access.owner->cluster->blocks)
    if (std::byte* part = arena_part(*peer, access.address)) {
      access.arena = part;
      access.owner = peer;
      return;
    }
}

// The checks of memory have passed: what else may the instruction access without them?
void remember(const Access& access, const SharedVariable* variable) {
  LastAccess& last = last_access_of(access.pc);
  if (variable) {
    const std::byte* begin = access.arena + variable->offset;
    last = {access.pc, nullptr, access.arena, access.owner, begin, begin + variable->size};
    return;
  }
  if (!access.allocation || !may_access_all(*access.allocation, access.is_write)) return;
  const auto [begin, end] = given_around(*access.allocation, access.address, access.size);
  if (is_closure_in(begin, end)) return;
  last = {access.pc, access.allocation, nullptr, nullptr, begin, end};
}

// Whether the checks of memory would pass, because they have passed for the same instruction.
bool is_known(const LastAccess& last, const std::byte* address, std::size_t size, const void* pc,
              const Block* own) {
  return last.pc == pc && address >= last.begin && address + size <= last.end &&
         (reinterpret_cast<std::uintptr_t>(address) & (size - 1)) == 0 && (!last.block || last.block == own);
}

void check_place(Access& access, bool is_copy) {
  Block* const own = access.owner;
  access.arena = arena_part(*own, access.address);
  if (!access.arena && own->cluster->blocks.size() > 1) find_peer(access);
  const SharedVariable* variable = nullptr;
  if (!access.arena) {
    check_memory(access, is_copy);
  } else if (is_on(Check::memory)) {
    variable = check_shared_bounds(access);
    if (!is_copy) check_alignment(access, variable);
  }
  if (is_on(Check::memory) && !is_copy && access.owner == own) remember(access, variable);
}

}  // namespace

void on_access(void* address, std::size_t size, bool is_write, AccessKind kind, const void* pc,
               bool is_copy) {
  if (kind == AccessKind::is_volatile && !is_write)
    count_poll();  // the thread may be waiting for another thread's write
  running.last_pc = pc;
  if (!running.observes_accesses) return;
  Block* const own = running.thread->block;
  Access access{static_cast<std::byte*>(address), size, is_write, kind, pc, nullptr, nullptr, own};
  const LastAccess& last = last_access_of(pc);
  const bool is_checked_before = !is_copy && is_known(last, access.address, size, pc, own);
  // The host's copy of a launch's arguments may be in the memory of a deleted tensor.
  if (!is_checked_before && is_closure(access.address)) return;
  const InRuntime inside;
  if (is_checked_before) {
    access.allocation = last.allocation;
    access.arena = last.arena;
  } else {
    check_place(access, is_copy);
  }
  check_undefined_stores(access);
  if (is_on(Check::initialisation) || is_on(Check::races)) check_shadow(access);
  if (access.owner != own) check_peer(access);
  if (running.launch->copies) check_arrived(access);
  if (counting) count_access(access, is_copy);
}

void record_arrival(void* to, std::size_t bytes, const void* pc) {
  Access access{static_cast<std::byte*>(to), bytes, true, AccessKind::plain, pc, nullptr, nullptr,
                running.thread->block};
  access.arena = arena_part(*access.owner, access.address);
  if (!access.arena) find_peer(access);
  if (!access.arena) access.allocation = find_allocation(to);
  if (is_on(Check::initialisation) || is_on(Check::races)) check_shadow(access);
}

}  // namespace emulator
