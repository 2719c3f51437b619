// Work in streams when the host waits for it without a function of CUDA: for what a host function or a
// callback does, with a condition variable or a join. A device runs the work in the meantime. Here it runs
// when every thread of the host is blocked. A thread that sleeps for some time is not: that is no way to wait
// for a device.
#pragma once

namespace emulator {

// Starts a thread that watches the host, at the first call. On systems without /proc, it does nothing.
void watch_for_blocked_host();

}  // namespace emulator
