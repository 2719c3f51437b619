// Accesses that nothing orders, and reads of what nobody wrote, as findings. Some turn out to be no mistake,
// which shows only later.
#pragma once

#include "access.h"
#include "order.h"

EMULATOR_BEGIN
namespace emulator {

// An instruction that touches memory, by its place in a table.
using Site = std::uint16_t;
Site site_of(const Access& access);

// An access and an earlier one, to the same bytes of a word.
struct Conflict {
  const Access* access;
  Site site;
  Stamp now;
  const std::byte* word;
  unsigned bytes;  // a bit for each byte of the word
  Stamp earlier;
  Site earlier_site;
  bool earlier_writes;
};

bool must_be_ordered(const Conflict& conflict);
void note_conflict(const Conflict& conflict);  // they must, and are not
void note_again(const Conflict& conflict);     // both are of one thread, and no step lies between
void note_unwritten(const Access& access, const std::byte* address);

extern bool has_doubts;
void settle_doubts();      // about the access before, which has happened by now
void forgive_conflicts();  // at the end of a launch: what was no mistake
void forget_conflicts();

}  // namespace emulator
EMULATOR_END
