// Checks of barriers and of the masks of warp functions; deadlocks.
#pragma once

#include <string>

#include "../launch/launch_state.h"
#include "../report/report.h"

EMULATOR_BEGIN
namespace emulator {

// When all threads have come that still can, before they go on.
void check_barrier(Block& block);
void check_collective(Block& block, unsigned warp, const Collective& collective);

// The mask does not name the lane that gives it: this thread cannot go on.
[[noreturn]] void refuse_mask(Operation operation, std::uint32_t mask, const Position& where);

// No thread can go on: an error that says which threads wait for which.
void add_deadlock();  // a failure, if the check is switched off

// For a launch that takes too long: "; meanwhile 31 threads wait at ..."; empty when none waits.
std::string waiting_threads();

// ---- what the messages of all of these need

// Findings name the thread that runs. This lets them name another, or none.
class AboutThread {
 public:
  explicit AboutThread(Thread* thread) : before_(running.thread) { running.thread = thread; }
  ~AboutThread() { running.thread = before_; }
  AboutThread(const AboutThread&) = delete;

 private:
  Thread* before_;
};

Cause cause_at(const char* problem, const Position& where);
std::string in_hex(std::uint32_t mask);
std::string lanes_text(std::uint32_t lanes);  // "lane 5", "lanes 0-15", "lanes 1, 3, 5, 7, ... 31"
std::string where_in(const Block& block, unsigned warp);

}  // namespace emulator
EMULATOR_END
