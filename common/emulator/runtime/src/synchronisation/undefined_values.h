// Undefined values: what a shuffle returns for a lane that is not in the mask, has returned or does not
// exist.
#pragma once

#include "../memory/access.h"
#include "barrier_check.h"

EMULATOR_BEGIN
namespace emulator {

std::uint32_t existing_lanes(const Block& block, unsigned warp);

// Reports that a thread used the value; `use` says how, and may be empty.
void add_undefined(Thread& thread, const Stray& stray, const std::string& use = "");

// Whether a value of 4 or 8 bytes is the undefined one or its sum with what the lane had.
bool is_made_of(const Stray& stray, std::uint64_t value, std::size_t size);

// A store to global memory uses the value. It shows only after the store, with the next access.
extern bool has_store_to_check;
void watch_store(const Access& access);
void check_store();
void forget_store();  // the launch is over
inline void check_undefined_stores(const Access& access) {
  if (has_store_to_check) check_store();
  if (access.is_write && access.allocation && running.thread->stray.lane != Stray::kNoLane)
    watch_store(access);
}

}  // namespace emulator
EMULATOR_END
