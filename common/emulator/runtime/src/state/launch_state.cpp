#include "launch_state.h"

#include <cstdio>

// One for all extensions of a process, each of which has its own runtime: signal handlers belong to the
// process. A unique symbol is the same for all, however they were loaded.
extern "C" {
__attribute__((visibility("default"))) constinit std::mutex emulator_one_launch{};
}
asm(".type emulator_one_launch, %gnu_unique_object");

namespace emulator {

EMULATOR_OF_CORE Running running;
bool is_launch_running = false;

uint3 index_at(dim3 size, std::uint64_t number) {
  return {unsigned(number % size.x), unsigned(number / size.x % size.y), unsigned(number / size.x / size.y)};
}

std::string text_of(uint3 index) {
  return "(" + std::to_string(index.x) + ", " + std::to_string(index.y) + ", " + std::to_string(index.z) +
         ")";
}

Place describe(const Thread* thread) {
  Place place = {};
  if (!running.launch) return place;
  if (!thread) {
    std::snprintf(place.text, sizeof(place.text), "kernel %.300s", running.launch->kernel);
    return place;
  }
  const uint3 b = thread->block->index, t = thread->index;
  std::snprintf(place.text, sizeof(place.text), "kernel %.300s, block (%u, %u, %u), thread (%u, %u, %u)",
                running.launch->kernel, b.x, b.y, b.z, t.x, t.y, t.z);
  return place;
}

bool is_called_by_kernel() {
  return running.launch && running.thread && pthread_equal(running.os_thread, pthread_self());
}

bool runs_in_kernel() { return running.in_kernel && pthread_equal(running.os_thread, pthread_self()); }

}  // namespace emulator
