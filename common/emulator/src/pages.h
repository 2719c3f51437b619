// Memory in pages of its own, with guards around it, so that the host can be kept away from the device's.
#pragma once

#include <cstddef>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

// Null when there is none left. What lies around it stays out of reach, and it is never handed out again:
// whoever goes past its end, or uses it after it was retired, meets nobody else's memory.
std::byte* take_pages(std::size_t bytes, bool only_device);
void retire_pages(std::byte* begin, std::size_t bytes);

// Whether the process has anything at an address, whatever it may do with it.
bool is_mapped(const void* address);

// Kernels and copies run while one of these lives. Otherwise a plain program's host cannot touch memory of
// the device, nor what work that has not been waited for still uses.
class OnDevice {
 public:
  OnDevice();
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
};

// The opposite, inside: a function of the host that a stream calls.
class OnHost {
 public:
  OnHost();
  ~OnHost();
  OnHost(const OnHost&) = delete;

 private:
  int depth_;
};

// Memory that both may use, but not now: the host may not write it, or not even read it.
struct Fence {
  std::byte* begin;
  std::size_t bytes;
  bool host_may_read;
  const void* for_work;  // whoever put it up
};
void put_up(const Fence& fence);
void take_down(const void* for_work);
const Fence* fence_at(const void* address);  // null: none
bool take_down_at(const void* address);      // all whose pages hold the address; false: none did

}  // namespace emulator
EMULATOR_END
