// The host of a plain program may access memory while a kernel uses it, if both use atomics of the whole
// system or volatile accesses. Work runs only when something waits for it. So a store or an update of the
// host comes before the kernel, and a load makes the kernel run first: it may be waiting for the result.
#pragma once

#include "../memory/access.h"

EMULATOR_BEGIN
namespace emulator {

// A load or store of the host, before it happens.
extern bool has_open_page;  // for the previous one
void access_from_host(void* address, std::size_t size, bool is_write, AccessKind kind, const void* pc);

// Lives while a piece of work runs, during which accesses of the host to its memory count as concurrent.
class ConcurrentHost {
 public:
  explicit ConcurrentHost(const void* work);
  ~ConcurrentHost();
  ConcurrentHost(const ConcurrentHost&) = delete;

 private:
  const void* outer_;
};
extern bool has_concurrent_host;

// An access of a kernel that is atomic only on the device, or not at all.
void check_against_host(const void* address, std::size_t size, bool is_write, const void* pc);

}  // namespace emulator
EMULATOR_END
