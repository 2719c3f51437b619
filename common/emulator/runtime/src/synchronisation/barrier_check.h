// Checks of barriers and of the masks of warp functions; deadlocks.
#pragma once

#include <string>

#include "../report/report.h"
#include "../state/launch_state.h"

EMULATOR_BEGIN
namespace emulator {

// Called when all threads that still can have arrived, before they continue.
void check_barrier(Block& block);
void check_collective(Block& block, unsigned warp, const Collective& collective);

// The mask does not include the calling lane, so this thread cannot continue.
[[noreturn]] void refuse_mask(Operation operation, std::uint32_t mask, const Position& where);

// All threads of the block that have not ended wait, at different calls.
void add_different_barriers(Block& block);

// ---- helpers for the messages

// Findings name the running thread. This makes them name another thread, or none.
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
