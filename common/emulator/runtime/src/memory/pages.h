// Memory in separate pages with guards around it, so that host accesses to device memory can be detected.
#pragma once

#include <cstddef>
#include <vector>

#include "emulator/qualifiers.h"

EMULATOR_BEGIN
namespace emulator {

// Null if no memory is left. The memory around it stays inaccessible, and it is never reused. So an overrun
// of its end, or a use after it was retired, never hits other memory.
std::byte* take_pages(std::size_t bytes, bool only_device);
void retire_pages(std::byte* begin, std::size_t bytes);

// Whether the machine has this much memory left. Linux gives out more than it has, and kills a process that
// uses it.
bool is_available(std::size_t bytes);

// Whether anything is mapped at an address, with whatever access rights.
bool is_mapped(const void* address);

// Kernels and copies run while one of these lives. Otherwise a plain program's host cannot access memory of
// the device, nor what work that has not been waited for still uses.
class OnDevice {
 public:
  OnDevice();
  ~OnDevice();
  OnDevice(const OnDevice&) = delete;
};

// The opposite, nested inside: a host function that a stream calls.
class OnHost {
 public:
  OnHost();
  ~OnHost();
  OnHost(const OnHost&) = delete;

 private:
  int depth_;
};

// Memory that both may use, but not now: the host may not write it, or not even read it. Or a result that no
// thread has written: the host may write it, and a read is a mistake.
struct PageProtection {
  std::byte* begin;
  std::size_t bytes;
  bool host_may_read;
  const void* for_work;  // the work that it was made for, or the allocation that is untouched
  bool is_untouched = false;
};
void protect_from_host(const PageProtection& protection);
void lift_protection(const void* for_work);
const PageProtection* protection_at(const void* address);  // null: none
// The work that the memory at an address is protected for, because the work writes it or, with `or_reads`,
// reads it.
std::vector<const void*> work_that_uses(const void* address, bool or_reads);
// Lets the host access protected memory at an address until `close_page`. False: it may access all memory
// now.
bool open_page(const void* address);
void close_page();
bool lift_protection_at(
    const void* address);  // removes every protection whose pages contain the address; false: there was none

}  // namespace emulator
EMULATOR_END
