// What is wrong with barriers and with the masks of warp functions, and who waits for whom.
#pragma once

#include <string>

#include "launch_state.h"
#include "report.h"

EMULATOR_BEGIN
namespace emulator {

// When all have come that still can, before they go on.
void check_barrier(Block& block);
void check_meeting(Block& block, unsigned warp, const Meeting& meeting);

// The mask does not name the lane that gives it: this thread cannot go on.
[[noreturn]] void refuse_mask(Operation operation, std::uint32_t mask, const Position& where);

// No thread can go on: an error that says who waits for whom.
void add_deadlock();  // a failure, if the check is switched off

// For a launch that takes too long: "; meanwhile 31 threads wait at ..."; empty when none waits.
std::string waiting_threads();

// ---- words for all of these

// Findings tell of the thread that runs. This lets them tell of another, or of none.
class AboutThread {
 public:
  explicit AboutThread(Thread* thread) : before_(current) { current = thread; }
  ~AboutThread() { current = before_; }
  AboutThread(const AboutThread&) = delete;

 private:
  Thread* before_;
};

Cause cause_at(const char* problem, const Position& where);
std::string in_hex(std::uint32_t mask);
std::string names_of(std::uint32_t lanes);  // "lane 5", "lanes 0-15", "lanes 1, 3, 5, 7, ... 31"
std::string where_in(const Block& block, unsigned warp);

}  // namespace emulator
EMULATOR_END
