// The way of one access through the checks.
#include "access.h"

#include <cstdio>
#include <string>

#include "counts.h"
#include "launch_state.h"
#include "report.h"

namespace emulator {
namespace {

[[noreturn]] void refuse_shared(const Access& access, const char* problem, const SharedVariable& variable,
                                std::ptrdiff_t offset) {
  const Cause cause{Check::memory, problem, access.counter, reinterpret_cast<const void*>(variable.key)};
  if (is_new(cause))
    add(cause,
        {false, std::string(access.is_write ? "writes " : "reads ") + problem + " " + name_of(variable), "",
         element_of(variable, offset) + "; " + describe(variable)});
  end_thread();
}

// The variable of the arena that an address lies in, or else the nearest in front of it.
const SharedVariable* check_shared_bounds(const Access& access, const std::byte* arena) {
  const std::ptrdiff_t offset = access.address - arena;
  const SharedVariable* nearest = nullptr;
  for (const SharedVariable& variable : state->variables) {
    if (variable.is_dynamic != (arena == current->block->arena.dynamic)) continue;
    const std::ptrdiff_t inside = offset - std::ptrdiff_t(variable.offset);
    if (inside >= 0 && inside + access.size <= variable.size) return &variable;
    if (!nearest || inside >= 0) nearest = &variable;
  }
  if (!nearest) return nullptr;
  const std::ptrdiff_t inside = offset - std::ptrdiff_t(nearest->offset);
  refuse_shared(access, inside < 0 ? "in front of" : "past the end of", *nearest, inside);
}

// Where shared memory begins that an address lies in; null for global memory.
std::byte* arena_part(const Block& block, const std::byte* address) {
  const std::ptrdiff_t offset = address - block.arena.bytes;
  if (offset < 0 || offset >= std::ptrdiff_t(kArenaSpan)) return nullptr;
  return address < block.arena.dynamic - kArenaGap ? block.arena.bytes : block.arena.dynamic;
}

}  // namespace

bool looks_at_accesses = true;
const void* last_counter = nullptr;

void on_access(void* address, std::size_t size, bool is_write, Kind kind, const void* counter, bool is_copy) {
  if (kind == Kind::is_volatile && !is_write) ask_again();  // perhaps it waits for another thread's word
  last_counter = counter;
  // The host's copy of a launch's arguments may lie where a tensor was that is gone.
  if (!looks_at_accesses || is_closure(static_cast<std::byte*>(address))) return;
  const InRuntime inside;
  Access access{static_cast<std::byte*>(address), size, is_write, kind, counter, nullptr, nullptr};
  access.arena = arena_part(*current->block, access.address);
  if (!access.arena) {
    check_memory(access, is_copy);
  } else if (is_on(Check::memory)) {
    const SharedVariable* variable = check_shared_bounds(access, access.arena);
    if (!is_copy) check_alignment(access, variable);
  }
  if (is_on(Check::initialisation) || is_on(Check::races)) check_shadow(access);
  if (counting) count_access(access, is_copy);
}

void end_thread() {
  in_kernel = false;
  set_error(cudaErrorIllegalAddress);
  Thread& thread = *current;
  thread.was_ended = true;
  thread.operation = Operation::none;
  leave_block(thread);
  if (thread.block->alive == 0) close_block(thread.block);
  current = nullptr;
  Fiber::drop();
}

}  // namespace emulator
