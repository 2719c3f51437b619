// Accesses that nothing orders, and reads of uninitialised memory, as findings. Some turn out to be benign,
// which shows only later: those are suspects until then.
#pragma once

#include "../memory/access.h"
#include "../ordering/happens_before.h"
#include "access_sites.h"

EMULATOR_BEGIN
namespace emulator {

// An access and an earlier one, to the same bytes of a word.
struct Conflict {
  const Access* access;
  Site site;
  Epoch now;
  const std::byte* word;
  unsigned bytes;  // a bit for each byte of the word
  Epoch earlier;
  Site earlier_site;
  bool earlier_writes;
};

bool must_be_ordered(const Conflict& conflict);
void record_conflict(const Conflict& conflict);    // they must, and are not
void record_repetition(const Conflict& conflict);  // both are of one thread, and no step lies between
void record_uninitialised_read(const Access& access, const std::byte* address, unsigned missing);  // bytes

extern bool has_suspects;
void settle_suspects();  // of the previous access, which has happened by now
void settle_races();     // at the end of a launch: benign ones are withdrawn
void forget_races();

}  // namespace emulator
EMULATOR_END
