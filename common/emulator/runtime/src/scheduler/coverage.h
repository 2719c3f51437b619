// Which blocks of a long launch are checked.
//
// First, all blocks are, in order. After some seconds (EMULATOR_SAMPLE_AFTER) a sample of the others runs before
// its turn, for half as long. Then the rest runs without checks, on all cores. So a block of the sample that
// accesses memory it must not access ends the launch before unchecked blocks could do damage. If blocks wait for
// each other, there is no sample: the rest runs in order. If the threads of a few blocks run for so long, their
// checks end in the middle.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

void begin_coverage(bool may_end);  // of the launch that runs: whether its checks may end before it does
void end_coverage();                // its blocks have ended; checks go on

// Seconds until the time for the checks of all blocks, or that for the sample, is up. All but the first part is
// processor time: other work on the machine must not change what is checked. None: nothing has a limit.
std::optional<double> seconds_to_next_phase();
void end_coverage_phase();      // that time is up; for signal handlers
bool end_checks_of_all_soon();  // for lack of memory; false: all must be checked
bool may_checks_end();

extern volatile bool must_end_checks;
void end_checks();  // because of that
bool have_checks_ended();

std::optional<std::uint64_t> start_next_cluster();  // of a launch that is not divided; none: all have started
// The first cluster from `next` on, in order, that has not started early; `next` is then behind it.
std::optional<std::uint64_t> next_in_order(std::uint64_t& next, const Schedule& schedule);

// "40 of the 9000 blocks of kernel add were checked ..."; empty if all blocks since the last call of
// `forget_coverage` were.
std::string coverage_note();
void forget_coverage();

}  // namespace emulator
EMULATOR_END
